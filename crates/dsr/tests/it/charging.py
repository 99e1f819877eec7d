"""An OCS or a charging client of python-diameter: `server HOST REALM PORT` knows its sessions and answers CCRs of others with
5002, `client HOST REALM PORT` sends as many CCRs as each line of its input says, three to a session, and prints result and
Origin-Host of each answer. The router is `dsr.example` in the same realm."""
import logging
import os
import sys

from diameter.message.avp.grouped import SubscriptionId
from diameter.message.commands.credit_control import CreditControlRequest
from diameter.node import Node
from diameter.node.application import SimpleThreadingApplication

CREDIT_CONTROL = 4
INITIAL, UPDATE, TERMINATION, EVENT = 1, 2, 3, 4
ROUTER = "dsr.example"
logging.disable(logging.CRITICAL)
sessions = set()


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


class Client:
    """A charging client with one session after another."""

    def __init__(self, application, node, realm):
        self.application, self.node, self.realm, self.sent = application, node, realm, 0

    def ask(self):
        number = self.sent % 3
        if number == 0:
            self.session = self.node.session_generator.next_id()
        request = CreditControlRequest()
        request.header.is_proxyable = True
        request.session_id = self.session
        request.origin_host = self.node.origin_host.encode()
        request.origin_realm = self.realm.encode()
        request.destination_realm = self.realm.encode()
        request.auth_application_id = CREDIT_CONTROL
        request.service_context_id = "32251@3gpp.org"
        request.cc_request_type = number + 1
        request.cc_request_number = number
        imsi = f"00101{self.sent // 3:010}"
        request.subscription_id = [SubscriptionId(subscription_id_type=1, subscription_id_data=imsi)]
        self.sent += 1
        reply = self.application.send_request(request, timeout=30)
        print(reply.result_code, reply.origin_host.decode(), flush=True)


def main():
    role, host, realm, port = sys.argv[1:]
    serves = role == "server"
    node = Node(host, realm, ip_addresses=["127.0.0.1"] if serves else None, tcp_port=int(port) if serves else None)
    application = SimpleThreadingApplication(CREDIT_CONTROL, is_auth_application=True, request_handler=answer)
    if serves:
        peer = node.add_peer(f"aaa://{ROUTER}", realm, is_persistent=False)
    else:
        peer = node.add_peer(f"aaa://{ROUTER}:{port}", realm, ip_addresses=["127.0.0.1"], is_persistent=True, is_default=True)
    node.add_application(application, [peer])
    node.start()
    if serves:
        print("listening", flush=True)
    else:
        application.wait_for_ready(30)
        print("up", flush=True)
    client = Client(application, node, realm)
    for line in sys.stdin:
        for _ in range(int(line)):
            client.ask()
    os._exit(0)


main()
