"""An OCS of python-diameter, which knows its sessions and answers CCRs of others with 5002, or a charging client, which sends three
CCRs to a session (`python_node`)."""
from diameter.message.avp.grouped import SubscriptionId
from diameter.message.commands.credit_control import CreditControlRequest

from python_node import run

CREDIT_CONTROL = 4
INITIAL, UPDATE, TERMINATION, EVENT = 1, 2, 3, 4
sessions = set()
session_of_client = None


def answer(application, request):
    session, kind = request.session_id, request.cc_request_type
    if kind == INITIAL:
        sessions.add(session)
    result = 2001 if kind == EVENT or session in sessions else 5002
    if kind == TERMINATION:
        sessions.discard(session)
    reply = application.generate_answer(request, result_code=result)
    reply.auth_application_id = CREDIT_CONTROL
    reply.cc_request_type = kind
    reply.cc_request_number = request.cc_request_number
    return reply


def request_of(node, sent):
    global session_of_client
    number = sent % 3
    if number == 0:
        session_of_client = node.session_generator.next_id()
    request = CreditControlRequest()
    request.session_id = session_of_client
    request.auth_application_id = CREDIT_CONTROL
    request.service_context_id = "32251@3gpp.org"
    request.cc_request_type = number + 1
    request.cc_request_number = number
    imsi = f"00101{sent // 3:010}"
    request.subscription_id = [SubscriptionId(subscription_id_type=1, subscription_id_data=imsi)]
    return request


run(CREDIT_CONTROL, "auth", answer, request_of)
