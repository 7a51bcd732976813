"""Drives an appliance with nitroapi: login, read, disable, read back, statistics, enable, refusals, logout.

Usage: nitroapi_client.py URL CA-FILE USERNAME PASSWORD. Prints one JSON document.
"""

import json
import sys
import urllib.parse

# nitroapi 0.1.0 was written for Python 2; all it needs of it is the old name of this module.
sys.modules["urlparse"] = urllib.parse

from nitroapi import API  # noqa: E402

url, ca, username, password = sys.argv[1:5]


def connect(secret):
    return API(username, secret, url, logging=False, verify_ssl=ca)


def login(api):
    payload = {"login": {"username": api.username, "password": api.password}}
    return api.request("/config/login", payload)


def state(api, group):
    name = urllib.parse.quote(urllib.parse.quote(group))
    path = "/config/servicegroup_servicegroupmember_binding/" + name
    rows = api.request(path)["servicegroup_servicegroupmember_binding"]
    return {row["servername"]: [row["svrstate"], row["state"], row["graceful"]] for row in rows}


seen = {}

wrong = connect("not the password")
seen["wrong password"] = login(wrong)
seen["session without login"] = wrong.session

api = connect(password)
login(api)
seen["session"] = api.session is not None
seen["before"] = state(api, "sg web")

member = {"servicegroupname": "sg web", "servername": "10.0.0.1", "port": 80}
graceful = dict(member, delay=0, graceful="YES")
reply = api.request("/config/servicegroup?action=disable", {"servicegroup": graceful})
seen["disable"] = reply["errorcode"]
seen["disabled"] = state(api, "sg web")

args = "servicegroupname:sg%20web,ip:10.0.0.1,port:80"
row = api.request("/stat/servicegroupmember?args=" + args)["servicegroupmember"][0]
seen["statistics"] = [row["state"], row["svrestablishedconn"], row["surgecount"], row["primaryport"]]

service = api.request("/config/service?action=disable", {"service": {"name": "svc 1", "delay": 0, "graceful": "YES"}})
seen["disable service"] = service["errorcode"]
row = api.request("/stat/service/svc%25201")["service"][0]
seen["service statistics"] = [row["name"], row["activetransactions"]]

reply = api.request("/config/servicegroup?action=enable", {"servicegroup": member})
seen["enable"] = reply["errorcode"]
seen["enabled"] = state(api, "sg web")

# A refusal comes back as nothing at all from this client.
unknown = dict(member, port=81)
seen["unknown member"] = api.request("/config/servicegroup?action=disable", {"servicegroup": unknown})
seen["superfluous key"] = api.request(
    "/config/servicegroup?action=enable", {"servicegroup": dict(member, graceful="NO")}
)

whole = api.request("/config/server?action=disable", {"server": {"name": "10.0.0.2", "delay": 0, "graceful": "NO"}})
seen["disable server"] = whole["errorcode"]
seen["server disabled"] = state(api, "sg web")
api.request("/config/server?action=enable", {"server": {"name": "10.0.0.2"}})

seen["save"] = api.request("/config/nsconfig?action=save", {"nsconfig": {}})["errorcode"]
api.request("/config/logout", {"logout": {}})
seen["session after logout"] = api.session

print(json.dumps(seen))
