"""A node of python-diameter: `server HOST REALM PORT` answers ACR, `client HOST REALM PORT` sends as many as each line of its
input says, and prints result and Origin-Host of each answer. The router is `dsr.example` in the same realm."""
import logging
import os
import sys

from diameter.message.commands.accounting import AccountingRequest
from diameter.node import Node
from diameter.node.application import SimpleThreadingApplication

ACCOUNTING = 3
ROUTER = "dsr.example"
logging.disable(logging.CRITICAL)


def answer(application, request):
    reply = application.generate_answer(request, result_code=2001)
    reply.accounting_record_type = request.accounting_record_type
    reply.accounting_record_number = request.accounting_record_number
    reply.acct_application_id = ACCOUNTING
    return reply


def ask(application, node, realm, number):
    request = AccountingRequest()
    request.header.is_proxyable = True
    request.session_id = node.session_generator.next_id()
    request.origin_host = node.origin_host.encode()
    request.origin_realm = realm.encode()
    request.destination_realm = realm.encode()
    request.accounting_record_type = 1
    request.accounting_record_number = number
    request.acct_application_id = ACCOUNTING
    reply = application.send_request(request, timeout=15)
    print(reply.result_code, reply.origin_host.decode(), flush=True)


def main():
    role, host, realm, port = sys.argv[1:]
    serves = role == "server"
    node = Node(host, realm, ip_addresses=["127.0.0.1"] if serves else None, tcp_port=int(port) if serves else None)
    application = SimpleThreadingApplication(ACCOUNTING, is_acct_application=True, request_handler=answer)
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
    for line in sys.stdin:
        for number in range(int(line)):
            ask(application, node, realm, number)
    os._exit(0)


main()
