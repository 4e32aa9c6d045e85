"""Drives a project over A2A with the protocol's own SDK; prints what it saw as one JSON document.

usage: client.py PHASE SETTINGS, where SETTINGS is a JSON object: url, and what the phase needs.
"""

import asyncio
import json
import pathlib
import ssl
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_artifact_text, get_data_parts, get_message_text, new_text_message
from a2a.types import a2a_pb2 as pb

SETTINGS = json.loads(sys.argv[2])


def http():
    """A way to the daemon: over TCP with a token, or over its socket."""
    headers = {}
    if SETTINGS.get("token"):
        headers["Authorization"] = "Bearer " + SETTINGS["token"]
    socket = SETTINGS.get("socket")
    transport = httpx.AsyncHTTPTransport(uds=socket) if socket else None
    trusted = ssl.create_default_context(cafile=SETTINGS["ca"]) if "ca" in SETTINGS else True
    return httpx.AsyncClient(headers=headers, transport=transport, verify=trusted, timeout=120)


async def client(http, streaming=True, binding="JSONRPC"):
    card = await A2ACardResolver(http, SETTINGS["url"]).get_agent_card()
    config = ClientConfig(
        streaming=streaming,
        httpx_client=http,
        supported_protocol_bindings=[binding],
        use_client_preference=True,
    )
    return card, ClientFactory(config).create(card)


def message(text, **fields):
    made = new_text_message(text, role=pb.ROLE_USER)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def state(status):
    return pb.TaskState.Name(status.state)


async def send(client, request):
    """Sends a message and follows what comes of it to the end of the stream."""
    task, context, states, artifacts, question = None, None, [], [], None
    async for event in client.send_message(request):
        kind = event.WhichOneof("payload")
        if kind == "task":
            task, context, status = event.task.id, event.task.context_id, event.task.status
            artifacts += [get_artifact_text(a) for a in event.task.artifacts]
        elif kind == "status_update":
            task, status = event.status_update.task_id, event.status_update.status
        elif kind == "artifact_update":
            artifacts.append(get_artifact_text(event.artifact_update.artifact))
            continue
        states.append(state(status))
        if status.state == pb.TASK_STATE_WORKING and "go" in SETTINGS:
            # It is seen at work, and may go on.
            pathlib.Path(SETTINGS["go"]).touch()
        if status.state == pb.TASK_STATE_INPUT_REQUIRED:
            question = {
                "text": get_message_text(status.message),
                "data": get_data_parts(status.message.parts),
            }
    return {"task": task, "context": context, "states": states, "artifacts": artifacts, "question": question}


async def refusal(awaited):
    try:
        await awaited
    except Exception as error:
        return type(error).__name__
    return None


async def begin():
    """Sends the first message, with a notification wanted, and follows it to the question."""
    async with http() as h:
        card, c = await client(h)
        request = pb.SendMessageRequest(message=message(SETTINGS["text"]))
        push = request.configuration.task_push_notification_config
        push.url, push.token = SETTINGS["push"], "push-secret"
        push.authentication.scheme, push.authentication.credentials = "Bearer", "push-credential"
        seen = await send(c, request)
        again = await send(c, request)
        return {
            "card": {
                "name": card.name,
                "skills": [skill.id for skill in card.skills],
                "streaming": card.capabilities.streaming,
                "schemes": list(card.security_schemes),
                "urls": [way.url.removeprefix(SETTINGS["url"]) for way in card.supported_interfaces],
            },
            "seen": seen,
            "again": again["task"],
            "message": request.message.message_id,
        }


async def answer():
    """Looks at the task after a restart, answers its question, and follows it to its end."""
    async with http() as h:
        _, c = await client(h)
        task = await c.get_task(pb.GetTaskRequest(id=SETTINGS["task"]))
        listed = await c.list_tasks(pb.ListTasksRequest(context_id=task.context_id))
        asking = await c.list_tasks(pb.ListTasksRequest(status=pb.TASK_STATE_INPUT_REQUIRED))
        said = message(SETTINGS["text"], task_id=task.id, context_id=task.context_id)
        request = pb.SendMessageRequest(message=said)
        seen = await send(c, request)
        again = await send(c, request)
        done = await c.get_task(pb.GetTaskRequest(id=task.id))
        late = message("more", task_id=task.id)
        return {
            "found": state(task.status),
            "history": [m.message_id for m in task.history],
            "listed": [t.id for t in listed.tasks],
            "asking": [t.id for t in asking.tasks],
            "seen": seen,
            "again": again["states"],
            "done": state(done.status),
            "messages": [get_message_text(m) for m in done.history],
            "artifacts": [get_artifact_text(a) for a in done.artifacts],
            "late": await refusal(send(c, pb.SendMessageRequest(message=late))),
            "subscribe": await refusal(anext(c.subscribe(pb.SubscribeToTaskRequest(id=task.id)))),
            "unknown": await refusal(c.get_task(pb.GetTaskRequest(id="nobody"))),
        }


async def steer():
    """Everything else: waiting without a stream, subscribing, cancelling, notifications, paths."""
    async with http() as h:
        _, c = await client(h, streaming=False)
        _, live = await client(h)
        _, rest = await client(h, streaming=False, binding="HTTP+JSON")
        first = await send(c, pb.SendMessageRequest(message=message("Write it")))
        task = first["task"]

        wanted = pb.TaskPushNotificationConfig(task_id=task, url=SETTINGS["push"], id="mine")
        made = await c.create_task_push_notification_config(wanted)
        got = await c.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(task_id=task, id="mine"))
        listed = await c.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id=task))
        await c.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(task_id=task, id="mine"))
        after = await c.list_task_push_notification_configs(
            pb.ListTaskPushNotificationConfigsRequest(task_id=task))
        refused = []
        for url in ["http://192.0.2.1/x", "http://0.0.0.0/x", "file:///etc/passwd", "http://u@127.0.0.1/",
                    "http://169.254.169.254/latest/meta-data", "https://10.0.0.1/x",
                    "https://192.168.1.1/x", "https://[fd00::1]/x", "https://169.254.169.254/x"]:
            odd = pb.TaskPushNotificationConfig(task_id=task, url=url)
            refused.append(await refusal(c.create_task_push_notification_config(odd)))

        by_path = await rest.get_task(pb.GetTaskRequest(id=task))
        listed_by_path = await rest.list_tasks(pb.ListTasksRequest(context_id=by_path.context_id))
        stream = live.subscribe(pb.SubscribeToTaskRequest(id=task))
        opened = await anext(stream)
        cancelled = await c.cancel_task(pb.CancelTaskRequest(id=task))
        told = [state(event.status_update.status) async for event in stream]
        twice = await refusal(c.cancel_task(pb.CancelTaskRequest(id=task)))
        second = await send(rest, pb.SendMessageRequest(
            message=message("Write it again", context_id=by_path.context_id)))
        together = await c.list_tasks(pb.ListTasksRequest(context_id=by_path.context_id, page_size=1))
        rest_of_it = await c.list_tasks(pb.ListTasksRequest(
            context_id=by_path.context_id, page_size=1, page_token=together.next_page_token))
        await c.cancel_task(pb.CancelTaskRequest(id=second["task"]))
        return {
            "first": first,
            "made": made.id, "got": got.url, "listed": len(listed.configs), "after": len(after.configs),
            "refused": refused,
            "by_path": state(by_path.status), "listed_by_path": len(listed_by_path.tasks),
            "opened": state(opened.task.status),
            "cancelled": state(cancelled.status), "told": told, "twice": twice,
            "together": [t.id for t in together.tasks] + [t.id for t in rest_of_it.tasks],
            "total": together.total_size, "more": rest_of_it.next_page_token,
            "second": second["task"],
        }


print(json.dumps(asyncio.run({"begin": begin, "answer": answer, "steer": steer}[sys.argv[1]]())))
