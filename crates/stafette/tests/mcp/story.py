"""The official Python client takes a piece of work from request to end.

It is given where the server is, and prints what it saw as one line of JSON.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PromptReference, ResourceTemplateReference

LIMIT = 300


def expect(holds, *what):
    if not holds:
        raise AssertionError(" ".join(str(part) for part in what))


async def story(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    expect(all(tool.output_schema for tool in tools.values()), "every tool has an output schema")
    told = []

    async def progress(step, _total, message):
        told.append((step, message))

    async def call(name, **arguments):
        # The client holds structured content against the output schema by itself.
        result = await client.call_tool(name, arguments, progress_callback=progress)
        text = result.content[0].text
        expect(not result.is_error, name, text)
        expect(json.loads(text) == result.structured_content, name, "says the same twice")
        return result.structured_content

    async def refused(name, **arguments):
        result = await client.call_tool(name, arguments)
        expect(result.is_error, name, "was not refused")
        expect(result.meta["stafette/problem"]["code"], "the code of the problem")
        return result.content[0].text

    run = (await call("start_run", request="Add a login"))["run"]
    offered = (await call("wait", agent="builder", run=run))["offered"]
    expect(told and told[0][0] == 1, "progress was told", told)
    expect(offered[0]["request"] == "Add a login", offered)
    turn = await call("accept", run=run, handoff=offered[0]["handoff"], by="ada")
    expect("ada" in await refused("accept", run=run, handoff=turn["handoff"], by="bob"), "taken")
    expect("reviewer" in turn["targets"], turn)
    mine = {"run": run, "turn": turn["turn"]}
    assessed = await call("assess", **mine)
    expect(assessed["can_handle"], assessed)
    said = await refused("handoff", to="boss", summary="x", **mine)
    expect("reviewer, orchestrator, human" in said, said)
    said = await refused("handoff", to="reviewer", summary="x", **mine)
    expect("`files`" in said, said)
    said = await refused("handoff", to="reviewer", sumary="x", **mine)
    expect("has no argument `sumary`" in said, said)
    left = await call("report", note="building", tokens=100, cost_usd=0.5, **mine)
    expect(left["tokens_left"] == 2_000_000 - 100, left)
    files = {"files": ["login.rs"]}
    await call("handoff", to="reviewer", summary="Built", outputs=files, **mine)
    await call("complete", summary="The login is built", **mine)
    expect("late" in await refused("complete", summary="again", **mine), "a second end is late")

    offered = (await call("wait", agent="reviewer", run=run))["offered"]
    turn = await call("accept", run=run, handoff=offered[0]["handoff"])
    mine = {"run": run, "turn": turn["turn"]}
    briefing = await call("briefing", **mine)
    expect(briefing["inputs"]["files"] == ["login.rs"], briefing)
    templates = (await client.list_resource_templates()).resource_templates
    expect(len(templates) == 4, templates)
    read = await client.read_resource(f"stafette://runs/{run}/briefings/reviewer")
    expect("login.rs" in read.contents[0].text, read)
    prompt = await client.get_prompt("reviewer", {"run": run})
    expect("You are reviewer" in prompt.messages[0].content.text, prompt)
    expect("login.rs" in prompt.messages[0].content.text, prompt)
    await call("complete", summary="It is good", outputs={"verdict": "approved"}, **mine)
    status = await call("status", run=run)
    expect(status["runs"][0]["status"] == "succeeded", status)
    expect(status["runs"][0]["spent_usd"] == 0.5, status)

    expect([prompt.name for prompt in (await client.list_prompts()).prompts] == ["builder", "reviewer"])
    listed = [resource.uri for resource in (await client.list_resources()).resources]
    expect(f"stafette://runs/{run}" in map(str, listed), listed)
    read = await client.read_resource("stafette://schemas/handoff-request")
    expect(json.loads(read.contents[0].text)["title"], read)
    ref = ResourceTemplateReference(type="ref/resource", uri="stafette://runs/{run}/briefings/{agent}")
    found = await client.complete(ref, {"name": "agent", "value": "re"}, {"run": run})
    expect(found.completion.values == ["reviewer"], found)
    found = await client.complete(PromptReference(type="ref/prompt", name="reviewer"), {"name": "run", "value": "lat"})
    expect(found.completion.values == ["latest"], found)

    # A long wait is called off in its midst, and the connection is as good as before.
    begun = asyncio.Event()

    async def begins(_step, _total, _message):
        begun.set()

    arguments = {"agent": "builder", "within_seconds": 600}
    waiting = asyncio.create_task(client.call_tool("wait", arguments, progress_callback=begins))
    await begun.wait()
    waiting.cancel()
    try:
        await waiting
        raise AssertionError("the wait was not cancelled")
    except asyncio.CancelledError:
        pass
    await call("status")
    return {"tools": sorted(tools), "protocol": client.protocol_version, "run": run}


async def main():
    where = json.loads(sys.argv[1])
    if where["transport"] == "stdio":
        server = StdioServerParameters(command=where["command"], args=where["arguments"], cwd=where["folder"], env=where["env"])
        client = Client(server, mode=where["era"])
        async with client:
            return await story(client)
    async with httpx2.AsyncClient(headers=where["headers"], timeout=LIMIT) as http:
        client = Client(streamable_http_client(where["url"], http_client=http), mode=where["era"])
        async with client:
            return await story(client)


print(json.dumps(asyncio.run(asyncio.wait_for(main(), LIMIT))))
