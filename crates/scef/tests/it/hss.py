"""An HSS and SMS-SC of python-diameter: `HOST REALM PORT` connects to the SCEF at this port, prints what it is asked for and answers
with success; a NIR authorizes IMSI 001010000000007, and a SIR is answered with it."""
import logging
import os
import sys

from diameter.message import Avp
from diameter.message import constants
from diameter.node import Node
from diameter.node.application import SimpleThreadingApplication

S6T = 16777345
TGPP = 10415
S6M = 16777310
T4 = 16777311
NIDD = 8388726
SUBSCRIBER = 8388641
logging.disable(logging.CRITICAL)


def value(avps, code):
    """The first AVP of 3GPP with this code, at any depth."""
    for avp in avps:
        if avp.code == code:
            return avp.value
        if isinstance(avp.value, list):
            found = value(avp.value, code)
            if found is not None:
                return found
    return None


def answer(application, request):
    command = request.header.command_code
    print(command, value(request.avps, 3111), value(request.avps, 3124), value(request.avps, 3127), flush=True)
    session = request.find_avps((constants.AVP_SESSION_ID, 0))[0].value
    reply = request.to_answer()
    reply.avps = [
        Avp.new(constants.AVP_SESSION_ID, value=session),
        Avp.new(constants.AVP_RESULT_CODE, value=2001),
        Avp.new(constants.AVP_AUTH_SESSION_STATE, value=1),
        Avp.new(constants.AVP_ORIGIN_HOST, value=application.node.origin_host.encode()),
        Avp.new(constants.AVP_ORIGIN_REALM, value=application.node.realm_name.encode()),
    ]
    if command == NIDD:
        imsi = Avp.new(constants.AVP_USER_NAME, value="001010000000007")
        reply.avps = reply.avps + [Avp.new(3151, TGPP, value=[imsi])]
    if command == SUBSCRIBER:
        imsi = Avp.new(constants.AVP_USER_NAME, value="001010000000007")
        reply.avps = reply.avps + [Avp.new(3102, TGPP, value=[imsi])]
    return reply


def main():
    host, realm, port = sys.argv[1:]
    node = Node(host, realm)
    peer = node.add_peer(f"aaa://scef.example.org:{port}", realm, ip_addresses=["127.0.0.1"], is_persistent=True)
    for number in (S6T, S6M, T4):
        application = SimpleThreadingApplication(number, is_auth_application=True, request_handler=answer)
        node.add_application(application, [peer])
    node.start()
    application.wait_for_ready(30)
    print("up", flush=True)
    sys.stdin.read()
    os._exit(0)


main()
