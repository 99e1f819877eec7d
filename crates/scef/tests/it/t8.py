"""A client of T8 whose data types were generated from the OpenAPI files of TS 29.122: it builds each body with them, and reads each answer."""
import sys

import httpx
from pydantic import TypeAdapter

MODELS, ROOT, TARGET, VERSION = sys.argv[1:]
DEVICE = "meter-7@iot.example.org"


def send(method, path, body=None, expected=200, kind="application/json"):
    content, headers = None, {}
    if body is not None:
        content = body.model_dump_json(by_alias=True, exclude_none=True, exclude_unset=True)
        headers = {"content-type": kind}
    answer = client.request(method, path, content=content, headers=headers)
    assert answer.http_version == VERSION, answer.http_version
    assert answer.status_code == expected, (method, path, answer.status_code, answer.text)
    return answer


def created(path, of, body):
    """A resource that was created; what is read of it is the same."""
    answer = send("POST", path, body, 201)
    assert answer.headers["location"] == answer.json()["self"], answer.text
    resource = answer.headers["location"].removeprefix(ROOT)
    first = of.model_validate_json(answer.content)
    again = of.model_validate_json(send("GET", resource).content)
    assert first == again, (first, again)
    assert again in TypeAdapter(list[of]).validate_json(send("GET", path).content)
    print(of.__name__)
    return resource


sys.path.insert(0, MODELS)
from monitoring import MonitoringEventSubscription as Subscription  # noqa: E402
from nidd import NiddConfiguration as Configuration  # noqa: E402
from nidd import NiddConfigurationPatch as Patch  # noqa: E402
from nidd import NiddDownlinkDataTransfer as Transfer  # noqa: E402
from nidd import ProblemDetails as Problem  # noqa: E402
from triggering import DeviceTriggering as Trigger  # noqa: E402

print("ready", flush=True)
with httpx.Client(base_url=ROOT, http1=VERSION != "HTTP/2", http2=VERSION == "HTTP/2", timeout=60) as client:
    user = {"externalId": DEVICE, "notificationDestination": TARGET}
    events = "/3gpp-monitoring-event/v1/as1/subscriptions"
    event = {**user, "monitoringType": "LOSS_OF_CONNECTIVITY", "maximumNumberOfReports": 2}
    subscription = created(events, Subscription, Subscription.model_validate(event))

    configuration = created("/3gpp-nidd/v1/as1/configurations", Configuration, Configuration.model_validate(user))
    patch = Patch.model_validate({"pdnEstablishmentOption": "WAIT_FOR_UE"})
    changed = send("PATCH", configuration, patch, kind="application/merge-patch+json")
    Configuration.model_validate_json(changed.content)
    data = Transfer.model_validate({"externalId": DEVICE, "data": "AAAA", "maximumLatency": 600})
    waiting = created(configuration + "/downlink-data-deliveries", Transfer, data)
    send("DELETE", waiting, expected=204)
    refused = send("GET", waiting, expected=404)
    assert Problem.model_validate_json(refused.content).status == 404, refused.text
    send("DELETE", configuration, expected=204)

    trigger = {**user, "validityPeriod": 600, "priority": "PRIORITY", "applicationPortId": 40000, "triggerPayload": "d2FrZQ=="}
    created("/3gpp-device-triggering/v1/as1/transactions", Trigger, Trigger.model_validate(trigger))
    send("DELETE", subscription, expected=204)
print("done")
