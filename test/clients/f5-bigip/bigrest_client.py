"""Drives a BIG-IP with bigrest: disable, read back, force offline, enable, statistics, refusals.

Usage: bigrest_client.py URL CA-FILE USERNAME PASSWORD. Prints one JSON document.
"""

import json
import re
import sys
from urllib.parse import urlsplit

from bigrest.bigip import BIGIP
from bigrest.common.exceptions import RESTAPIError

url, ca, username, password = sys.argv[1:5]
POOL = "/mgmt/tm/ltm/pool/~Common~web"
MEMBERS = POOL + "/members"


def connect(secret):
    parts = urlsplit(url)
    return BIGIP(
        device=f"{parts.hostname}:{parts.port}",
        username=username,
        password=secret,
        request_token=True,
        session_verify=ca,
    )


def words(member):
    return [member.properties["session"], member.properties["state"]]


def status_of(call):
    try:
        call()
    except RESTAPIError as error:
        return int(re.search(r"Status:\s*(\d+)", str(error))[1])
    return 200


device = connect(password)
result = {"client": "bigrest", "steps": {}}
for name in ["10.0.0.1:80", "10.0.0.2%1:80", "2001:db8::1.80"]:
    path = f"{MEMBERS}/~Common~{name.replace('%', '%25')}"
    steps = {"before": words(device.load(path))}
    member = device.load(path)
    member.properties["session"] = "user-disabled"
    steps["disabled"] = words(device.modify(path, {"session": "user-disabled"}))
    steps["offline"] = words(
        device.modify(path, {"session": "user-disabled", "state": "user-down"})
    )
    steps["read back"] = words(device.load(path))
    stats = device.show(path)
    counters = stats[0].properties if isinstance(stats, list) else stats.properties
    steps["connections"] = counters["serverside.curConns"]["value"]
    steps["enabled"] = words(device.modify(path, {"session": "user-enabled", "state": "user-up"}))
    result["steps"][name] = steps

result["members"] = sorted(m.properties["fullPath"] for m in device.load(MEMBERS))
result["all stats"] = len(device.show(MEMBERS))
result["unknown member"] = status_of(lambda: device.load(f"{MEMBERS}/~Common~9.9.9.9:80"))
result["unknown exists"] = device.exist(f"{MEMBERS}/~Common~9.9.9.9:80")
result["read word written"] = status_of(
    lambda: device.modify(f"{MEMBERS}/~Common~10.0.0.1:80", {"state": "up"})
)
result["wrong password"] = status_of(lambda: connect("not the password"))

node = "/mgmt/tm/ltm/node/~Common~10.0.0.1"
result["node"] = words(device.modify(node, {"session": "user-disabled"}))
stats = device.show(f"{MEMBERS}/~Common~10.0.0.1:80")
counters = stats[0].properties if isinstance(stats, list) else stats.properties
result["member of disabled node"] = counters["status.enabledState"]["description"]
device.modify(node, {"session": "user-enabled", "state": "user-up"})

with device:
    for name in ["10.0.0.1:80", "10.0.0.2%251:80"]:
        device.modify(f"{MEMBERS}/~Common~{name}", {"session": "user-disabled"})
result["after transaction"] = [
    words(device.load(f"{MEMBERS}/~Common~{name}"))[0] for name in ["10.0.0.1:80", "10.0.0.2%251:80"]
]

new = device.create(MEMBERS, {"name": "10.0.0.9:80", "partition": "Common", "state": "user-down"})
result["created"] = words(new)
result["created twice"] = status_of(
    lambda: device.create(MEMBERS, {"name": "10.0.0.9:80", "partition": "Common"})
)
device.delete(f"{MEMBERS}/~Common~10.0.0.9:80")
result["deleted"] = not device.exist(f"{MEMBERS}/~Common~10.0.0.9:80")
device.command("/mgmt/tm/sys/config", {"command": "save"})

print(json.dumps(result))
