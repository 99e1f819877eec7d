"""Generates data types of an OpenAPI file: python3 t8_generate.py FILE OUTPUT."""
import pathlib
import sys
import threading

from datamodel_code_generator import DataModelType, InputFileType, generate


def run():
    generate(
        pathlib.Path(sys.argv[1]),
        input_file_type=InputFileType.OpenAPI,
        output=pathlib.Path(sys.argv[2]),
        output_model_type=DataModelType.PydanticV2BaseModel,
        formatters=[],
    )


# The files of 3GPP refer to one another deeper than Python's usual stack is.
sys.setrecursionlimit(50_000)
threading.stack_size(1 << 30)
thread = threading.Thread(target=run)
thread.start()
thread.join()
