"""Runs a node of python-diameter: `server HOST REALM PORT` answers requests, `client HOST REALM PORT` sends as many as each line
of its input says, and prints result and Origin-Host of each answer. The router is `dsr.example` in the same realm."""
import logging
import os
import sys

from diameter.node import Node
from diameter.node.application import SimpleThreadingApplication

ROUTER = "dsr.example"
logging.disable(logging.CRITICAL)


def run(number, kind, answer, request_of):
    """An application (`kind`: acct or auth): `answer(application, request)` makes an answer, `request_of(node, sent)` the next
    request."""
    role, host, realm, port = sys.argv[1:]
    serves = role == "server"
    node = Node(host, realm, ip_addresses=["127.0.0.1"] if serves else None, tcp_port=int(port) if serves else None)
    application = SimpleThreadingApplication(number, request_handler=answer, **{f"is_{kind}_application": True})
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
    sent = 0
    for line in sys.stdin:
        for _ in range(int(line)):
            request = request_of(node, sent)
            request.header.is_proxyable = True
            request.origin_host = node.origin_host.encode()
            request.origin_realm = realm.encode()
            request.destination_realm = realm.encode()
            reply = application.send_request(request, timeout=30)
            print(reply.result_code, reply.origin_host.decode(), flush=True)
            sent += 1
    os._exit(0)
