"""A node of python-diameter that answers ACRs, or sends them (`python_node`)."""
from diameter.message.commands.accounting import AccountingRequest

from python_node import run

ACCOUNTING = 3


def answer(application, request):
    reply = application.generate_answer(request, result_code=2001)
    reply.accounting_record_type = request.accounting_record_type
    reply.accounting_record_number = request.accounting_record_number
    reply.acct_application_id = ACCOUNTING
    return reply


def request_of(node, sent):
    request = AccountingRequest()
    request.session_id = node.session_generator.next_id()
    request.accounting_record_type = 1
    request.accounting_record_number = sent
    request.acct_application_id = ACCOUNTING
    return request


run(ACCOUNTING, "acct", answer, request_of)
