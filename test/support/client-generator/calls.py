"""Calls a gateway by a package that openapi-python-client generated. Arguments: URL, token."""

import importlib
import pkgutil
import sys
from uuid import uuid4

import sluice_client.api
from sluice_client import AuthenticatedClient, models

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
operations = {
    module.name.rsplit(".", 1)[1]: module.name
    for module in pkgutil.walk_packages(sluice_client.api.__path__, "sluice_client.api.")
}


def call(name, kind, /, *path, **options):
    """The parsed response, which must be of the documented type."""
    operation = importlib.import_module(operations[name])
    response = operation.sync_detailed(*path, client=client, **options)
    if not isinstance(response.parsed, kind):
        raise TypeError(f"{name}: {response.status_code} {response.content!r}")
    print(name)
    return response.parsed


def body(kind, /, **fields):
    return getattr(models, kind).from_dict(fields)


name = f"python-{uuid4().hex[:8]}"
me = call("get_me", models.Caller)
call("create_group", models.Group, body=body("CreateGroupBody", name=name, permissions=[]))
groups = call("list_groups", models.ListGroupsResponse200)
assert name in [group.name for group in groups.data]
assert call("get_user", models.UserDetails, me.id).id == me.id

listed = call("list_models", models.ModelList)
assert "demo" in [model.id for model in listed.data]
assert call("get_model", models.Model, "demo").id == "demo"

function = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
message = {"role": "user", "content": [{"type": "input_text", "text": "Say hello."}]}
request = body(
    "CreateResponse",
    model="demo",
    input=[message],
    tools=[function],
    tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look_up"}]},
    text={"format": {"type": "text"}},
    metadata={"from": "python"},
)
assert isinstance(request.tool_choice, models.AllowedTools), request.tool_choice
assert isinstance(request.tools[0], models.FunctionTool), request.tools
created = call("create_response", models.ResponseObject, body=request)
[output] = created.output
assert isinstance(output, models.OutputMessage), output
assert isinstance(output.content[0], models.OutputText), output
assert call("get_response", models.ResponseObject, created.id).id == created.id
[item] = call("list_response_input_items", object, created.id).data
assert isinstance(item, models.StoredMessage), item
tokens = call("count_response_input_tokens", models.ResponseInputTokens, body=request)
assert tokens.input_tokens > 0

asked = body("CreateMessage", model="demo", max_tokens=64, messages=[{"role": "user", "content": "Hello."}])
answer = call("create_compat_message", models.Message, body=asked)
assert isinstance(answer.content[0], models.TextBlock), answer

agent = call("create_agent", models.Agent, body=body("NewAgent", name=name, model="demo"))
assert agent.id in [one.id for one in call("list_agents", object).data]
key = call("create_api_key", models.CreatedApiKey, body=body("CreateApiKeyBody", name=name))
assert key.key.startswith("sk-")
conversation = call("create_conversation", models.Conversation, body=body("CreateConversation"))
call("create_conversation_item", object, conversation.id, body=body("AddItems", items=[message]))
vectors = call("create_embedding", models.EmbeddingList, body=body("EmbeddingRequest", model="local-hash", input="one"))
assert len(vectors.data) == 1
call("get_config", models.Config)
