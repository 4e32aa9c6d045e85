"""A remote agent made with the protocol's own SDK. Says where it is on the first line it prints.

It asks which database to use, waits for a file to appear, and hands in what it was told. Each time
it begins, and each time it is called off, it adds a line to a ledger.

usage: server.py LEDGER GATE [plain] [tls], which takes cert.pem and key.pem from its folder
"""

import asyncio
import pathlib
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_part, new_data_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from starlette.applications import Starlette

LEDGER, GATE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
STREAMS = "plain" not in sys.argv[3:]
TLS = "tls" in sys.argv[3:]


def note(line):
    with LEDGER.open("a") as ledger:
        ledger.write(line + "\n")


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        words = context.get_user_input()
        if "## Request" in words:
            note("began")
            say = [new_text_part("Which database?"), new_data_part({"options": ["SQLite", "PostgreSQL"]})]
            await updater.start_work(updater.new_agent_message([new_text_part("looking around")]))
            return await updater.requires_input(updater.new_agent_message(say))
        note("answered " + words)
        await updater.start_work(updater.new_agent_message([new_text_part("building with " + words)]))
        while not GATE.exists():
            await asyncio.sleep(0.02)
        await updater.add_artifact(
            [new_text_part("It is built with " + words), new_data_part({"database": words})], name="result")
        await updater.complete()

    async def cancel(self, context, queue):
        note("called off")
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def main():
    door = socket.create_server(("127.0.0.1", 0))
    url = ("https://localhost:%d" if TLS else "http://127.0.0.1:%d") % door.getsockname()[1]
    card = pb.AgentCard(
        name="remote", description="Builds.", version="1",
        supported_interfaces=[pb.AgentInterface(
            url=url + "/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=pb.AgentCapabilities(streaming=STREAMS),
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="build", name="build", description="Builds.", tags=["build"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    print(url, flush=True)
    safe = {"ssl_certfile": "cert.pem", "ssl_keyfile": "key.pem"} if TLS else {}
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning", **safe)
    asyncio.run(uvicorn.Server(config).serve(sockets=[door]))


main()
