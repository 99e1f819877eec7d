"""pycrate as a judge of TCAP, MAP and ISUP: writes random messages with what they say, reads those of others.

judge.py write SEED COUNT   prints a line a message: kind, octets, fields
judge.py read               reads lines of kind and octets, prints the fields of each

Fields are `name=value` with `;` between them, in the order of their names. A number is nature:plan:digits.
"""

import random
import sys
import warnings

from pycrate_asn1dir import TCAP_MAP
from pycrate_mobile import ISUP

warnings.filterwarnings("ignore")
MESSAGE = TCAP_MAP.TCAP_MAP_Messages.TCAP_MAP_Message
CONTEXT = (0, 4, 0, 0, 1, 0)


def shown(fields):
    return ";".join(f"{name}={fields[name]}" for name in sorted(fields) if fields[name] is not None)


def packed(digits):
    padded = digits + "f" * (len(digits) % 2)
    return bytes(int(padded[at + 1] + padded[at], 16) for at in range(0, len(padded), 2))


def unpacked(octets):
    digits = "".join(f"{octet & 15:x}{octet >> 4:x}" for octet in octets)
    return digits.split("f")[0]


def text_of(address):
    return f"{address[0] >> 4 & 7}:{address[0] & 15}:{unpacked(address[1:])}"


class Map:
    """Random arguments of MAP (TS 29.002), by operation: its type, its value, and the fields that routing uses."""

    def __init__(self, dice):
        self.dice = dice

    def digits(self, least, most):
        return "".join(self.dice.choice("0123456789") for _ in range(self.dice.randint(least, most)))

    def address(self):
        nature, plan = self.dice.choice([(1, 1), (2, 1), (1, 6), (0, 1)])
        octets = bytes([0x80 | nature << 4 | plan]) + packed(self.digits(3, 15))
        return octets, text_of(octets)

    def subscriber(self):
        digits = self.digits(6, 15)
        return packed(digits), digits

    def maybe(self, value, chance=0.5):
        return value if self.dice.random() < chance else {}

    def octets(self, least, most):
        return bytes(self.dice.randrange(256) for _ in range(self.dice.randint(least, most)))

    def origin(self):
        kind = self.dice.choice(["msisdn", "serviceCentreAddressOA", "noSM-RP-OA"])
        if kind == "noSM-RP-OA":
            return (kind, 0), "none"
        octets, text = self.address()
        return (kind, octets), ("msisdn " if kind == "msisdn" else "sc ") + text

    def destination(self):
        kind = self.dice.choice(["imsi", "lmsi", "serviceCentreAddressDA", "noSM-RP-DA"])
        if kind == "imsi":
            octets, text = self.subscriber()
            return (kind, octets), "imsi " + text
        if kind == "lmsi":
            octets = self.octets(4, 4)
            return (kind, octets), "lmsi " + octets.hex()
        if kind == "noSM-RP-DA":
            return (kind, 0), "none"
        octets, text = self.address()
        return (kind, octets), "sc " + text

    def short_message(self, name):
        destination, da = self.destination()
        origin, oa = self.origin()
        tpdu = self.octets(1, 120)
        value = {"sm-RP-DA": destination, "sm-RP-OA": origin, "sm-RP-UI": tpdu}
        if name == "MO-ForwardSM-Arg":
            # A second octet string, behind the TPDU.
            value |= self.maybe({"imsi": self.subscriber()[0]})
        else:
            value |= self.maybe({"moreMessagesToSend": 0})
        return name, value, {"da": da, "oa": oa, "ui": tpdu.hex()}

    def argument(self, operation):
        (imsi, imsi_text), (msisdn, msisdn_text) = self.subscriber(), self.address()
        (node, node_text), (other, other_text) = self.address(), self.address()
        if operation == 2:
            value = {"imsi": imsi, "msc-Number": node, "vlr-Number": other}
            return "UpdateLocationArg", value, {"imsi": imsi_text, "msc": node_text, "vlr": other_text}
        if operation == 3:
            with_lmsi = ("imsi-WithLMSI", {"imsi": imsi, "lmsi": self.octets(4, 4)})
            identity = self.dice.choice([("imsi", imsi), with_lmsi])
            return "CancelLocationArg", {"identity": identity}, {"imsi": imsi_text}
        if operation == 4:
            value = {"imsi": imsi, "msc-Number": node} | self.maybe({"msisdn": msisdn}, 1.0)
            return "ProvideRoamingNumberArg", value, {"imsi": imsi_text, "msc": node_text, "msisdn": msisdn_text}
        if operation == 22:
            value = {"msisdn": msisdn, "interrogationType": "basicCall", "gmsc-OrGsmSCF-Address": node}
            value |= self.maybe({"numberOfForwarding": self.dice.randint(1, 5)})
            return "SendRoutingInfoArg", value, {"msisdn": msisdn_text}
        if operation == 23:
            value = {"imsi": imsi, "sgsn-Number": node, "sgsn-Address": self.octets(5, 17)}
            return "UpdateGprsLocationArg", value, {"imsi": imsi_text, "sgsn": node_text}
        if operation == 24:
            return "SendRoutingInfoForGprsArg", {"imsi": imsi, "ggsn-Number": node}, {"imsi": imsi_text}
        if operation == 44:
            return self.short_message("MT-ForwardSM-Arg")
        if operation == 45:
            value = {"msisdn": msisdn, "sm-RP-PRI": self.dice.random() < 0.5, "serviceCentreAddress": node}
            value |= self.maybe({"gprsSupportIndicator": 0}) | self.maybe({"imsi": imsi})
            return "RoutingInfoForSM-Arg", value, {"msisdn": msisdn_text, "sc": node_text}
        if operation == 46:
            return self.short_message("MO-ForwardSM-Arg")
        if operation == 47:
            value = {"msisdn": msisdn, "serviceCentreAddress": node, "sm-DeliveryOutcome": "absentSubscriber"}
            return "ReportSM-DeliveryStatusArg", value, {"msisdn": msisdn_text, "sc": node_text}
        if operation == 56:
            value = {"imsi": imsi, "numberOfRequestedVectors": self.dice.randint(1, 5)}
            return "SendAuthenticationInfoArg", value, {"imsi": imsi_text}
        if operation == 59:
            value = {"ussd-DataCodingScheme": b"\x0f", "ussd-String": self.octets(1, 100), "msisdn": msisdn}
            value |= self.maybe({"alertingPattern": b"\x01"})
            return "USSD-Arg", value, {"msisdn": msisdn_text}
        if operation == 66:
            return "ReadyForSM-Arg", {"imsi": imsi, "alertReason": "ms-Present"}, {"imsi": imsi_text}
        if operation == 67:
            value = {"imsi": imsi} | self.dice.choice([{"vlr-Number": node}, {"sgsn-Number": node}])
            where = "vlr" if "vlr-Number" in value else "sgsn"
            return "PurgeMS-Arg", value, {"imsi": imsi_text, where: node_text}
        if operation == 71:
            identity = self.dice.choice([("imsi", imsi), ("msisdn", msisdn)])
            fields = {"imsi": imsi_text} if identity[0] == "imsi" else {"msisdn": msisdn_text}
            value = {"subscriberIdentity": identity, "requestedInfo": {"locationInformation": 0}, "gsmSCF-Address": node}
            return "AnyTimeInterrogationArg", value, fields | {"scf": node_text}
        raise ValueError(operation)


OPERATIONS = [2, 3, 4, 22, 23, 24, 44, 45, 46, 47, 56, 59, 66, 67, 71]


def dialogue(kind, context):
    """AARQ of the dialogue portion with an application context."""
    name = {"application-context-name": context}
    return {
        "direct-reference": (0, 0, 17, 773, 1, 1, 1),
        "encoding": ("single-ASN1-type", ("DialoguePDU", (kind, name))),
    }


def write_map(dice):
    operation = dice.choice(OPERATIONS)
    kind, value, fields = Map(dice).argument(operation)
    invoke_id = dice.randint(-128, 127)
    otid = bytes(dice.randrange(256) for _ in range(dice.randint(1, 4)))
    invoke = {"invokeId": ("present", invoke_id), "opcode": ("local", operation), "argument": (kind, value)}
    begin = {"otid": otid, "components": [("basicROS", ("invoke", invoke))]}
    fields |= {"otid": otid.hex(), "id": invoke_id, "op": operation}
    if dice.random() < 0.7:
        context = CONTEXT + (dice.randint(1, 40), dice.randint(1, 4))
        begin["dialoguePortion"] = dialogue("dialogueRequest", context)
        fields["context"] = ".".join(str(arc) for arc in context)
    MESSAGE.set_val(("begin", begin))
    return MESSAGE.to_ber(), fields


def read_map(octets):
    MESSAGE.from_ber(octets)
    kind, value = MESSAGE.get_val()
    fields = {"type": kind}
    for name in ("otid", "dtid"):
        if name in value:
            fields[name] = value[name].hex()
    reason = value.get("reason")
    portion = value.get("dialoguePortion")
    if reason and reason[0] == "p-abortCause":
        fields["cause"] = reason[1]
    elif reason:
        portion = reason[1]
    if portion:
        fields["dialogue"], pdu = portion["encoding"][1][1]
        if "application-context-name" in pdu:
            fields["context"] = ".".join(str(arc) for arc in pdu["application-context-name"])
        if "result" in pdu:
            fields["accepted"] = pdu["result"]
        if "abort-source" in pdu:
            fields["source"] = pdu["abort-source"]
    for component in value.get("components", []):
        kind, body = component[1] if component[0] == "basicROS" else ("returnResultNotLast", component[1][1])
        fields["component"] = kind
        present, invoke_id = body["invokeId"]
        fields["id"] = invoke_id if present == "present" else None
        if "opcode" in body:
            fields["op"] = body["opcode"][1]
        if "result" in body:
            fields["op"] = body["result"]["opcode"][1]
        if "errcode" in body:
            fields["error"] = body["errcode"][1]
        if "problem" in body:
            fields["problem"] = f"{body['problem'][0]} {body['problem'][1]}"
    return fields


def number_of(parameter):
    return f"{parameter['NAI'].get_val()}:{parameter['NumPlan'].get_val()}:{parameter.get_num()}"


def parameter(message, name):
    """An optional parameter: name and length stand around it."""
    return message["Opt"][name][name]


def write_iam(dice):
    digits = Map(dice).digits
    called, calling = digits(1, 20), digits(1, 15)
    iam = ISUP.InitialAddress()
    circuit = dice.randrange(4096)
    iam["CIC"].set_val(circuit)
    nature = dice.choice([1, 2, 3, 4, 8])
    number = iam["CalledPartyNum"]["CalledPartyNum"]
    number["NAI"].set_val(nature)
    number["NumPlan"].set_val(1)
    number.set_num(called)
    fields = {"circuit": circuit, "called": f"{nature}:1:{called}"}
    if dice.random() < 0.5:
        iam["Opt"]["CallingPartyNum"].set_trans(False)
        iam["Opt"]["EOO"].set_trans(False)
        number = parameter(iam, "CallingPartyNum")
        number["NAI"].set_val(4)
        number["NumPlan"].set_val(1)
        number.set_num(calling)
        fields["calling"] = f"4:1:{calling}"
    return iam.to_bytes(), fields


def read_isup(octets):
    message, error = ISUP.parse_ISUP(octets)
    if error:
        raise ValueError(f"pycrate: {error}")
    fields = {"type": message["Type"].get_val(), "circuit": message["CIC"].get_val()}
    if fields["type"] == 1:
        fields["called"] = number_of(message["CalledPartyNum"]["CalledPartyNum"])
        fields["calling"] = number_of(parameter(message, "CallingPartyNum"))
        fields["status"] = parameter(message, "NumPortabilityForwardInfo").get_val()[-1]
    else:
        cause = message["CauseInd"]["CauseInd"].get_val()
        fields["location"], fields["cause"] = cause[3], cause[5] << 4 | cause[6]
    return fields


READ = {"map": read_map, "isup": read_isup}


def main():
    if sys.argv[1] == "write":
        dice = random.Random(int(sys.argv[2]))
        for at in range(int(sys.argv[3])):
            kind, write = [("map", write_map), ("iam", write_iam)][at % 2]
            octets, fields = write(dice)
            print(kind, octets.hex(), shown(fields))
        return
    for line in sys.stdin:
        kind, octets = line.split()
        print(shown(READ[kind](bytes.fromhex(octets))), flush=True)


if __name__ == "__main__":
    main()
