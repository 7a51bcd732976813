"""Drives a BIG-IP with f5-sdk (and f5-icontrol-rest): the same round as the other clients.

Usage: f5sdk_client.py URL CA-FILE USERNAME PASSWORD. Prints one JSON document.
"""

import json
import os
import sys
from urllib.parse import urlsplit

url, ca, username, password = sys.argv[1:5]
os.environ["REQUESTS_CA_BUNDLE"] = ca  # its login request takes no other

from f5.bigip import ManagementRoot  # noqa: E402
from icontrol.exceptions import iControlUnexpectedHTTPError  # noqa: E402


def connect(secret):
    parts = urlsplit(url)
    return ManagementRoot(
        parts.hostname, username, secret, port=parts.port, token=True, verify=ca
    )


def status_of(call):
    try:
        call()
    except iControlUnexpectedHTTPError as error:
        return error.response.status_code
    return 200


def words(member):
    member.refresh()
    return [member.session, member.state]


device = connect(password)
pool = device.tm.ltm.pools.pool.load(name="web", partition="Common")
result = {"client": "f5-sdk", "version": device.tmos_version, "steps": {}}
for name in ["10.0.0.1:80", "10.0.0.2%1:80", "2001:db8::1.80"]:
    member = pool.members_s.members.load(name=name, partition="Common")
    steps = {"before": words(member)}
    member.modify(session="user-disabled")
    steps["disabled"] = words(member)
    member.modify(session="user-disabled", state="user-down")
    steps["offline"] = words(member)
    steps["read back"] = words(pool.members_s.members.load(name=name, partition="Common"))
    stats = member.stats.load()
    nested = next(iter(stats.entries.values()))["nestedStats"]["entries"]
    steps["connections"] = nested["serverside.curConns"]["value"]
    member.modify(session="user-enabled", state="user-up")
    steps["enabled"] = words(member)
    result["steps"][name] = steps

result["members"] = sorted(m.fullPath for m in pool.members_s.get_collection())
result["unknown exists"] = pool.members_s.members.exists(name="9.9.9.9:80", partition="Common")
result["unknown member"] = status_of(
    lambda: pool.members_s.members.load(name="9.9.9.9:80", partition="Common")
)
result["unknown pool"] = status_of(
    lambda: device.tm.ltm.pools.pool.load(name="nope", partition="Common")
)
result["wrong password"] = status_of(lambda: connect("not the password"))

# The whole object put back: this client leaves out the words that are only read
member = pool.members_s.members.load(name="10.0.0.1:80", partition="Common")
member.session = "user-disabled"
member.update()
result["put"] = words(member)
member.modify(session="user-enabled", state="user-up")

node = device.tm.ltm.nodes.node.load(name="10.0.0.1", partition="Common")
node.modify(session="user-disabled")
result["node"] = words(node)
node.modify(session="user-enabled", state="user-up")

created = pool.members_s.members.create(name="10.0.0.9:80", partition="Common", address="10.0.0.9")
result["created"] = words(created)
created.delete()
result["deleted"] = not pool.members_s.members.exists(name="10.0.0.9:80", partition="Common")

failover = device.tm.cm.failover_status
failover.refresh()
entry = next(iter(failover.entries.values()))["nestedStats"]["entries"]
result["role"] = entry["status"]["description"]
device.tm.sys.config.exec_cmd("save")

print(json.dumps(result))
