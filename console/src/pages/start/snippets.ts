/** What a snippet needs: the caller's own address, a key, and a model. */
type SnippetValues = {
  readonly origin: string
  readonly key: string
  readonly model: string
}

export type Snippet = {
  readonly name: string
  readonly label: string
  readonly code: (values: SnippetValues) => string
}

/** Programs that are ready to run, by client. */
export const snippets: readonly Snippet[] = [
  {
    name: 'python',
    label: 'OpenAI · Python',
    code: ({ origin, key, model }) => `# pip install openai
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")

stream = client.responses.create(model="${model}", input="Say hello.", stream=True)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`,
  },
  {
    name: 'node',
    label: 'OpenAI · Node',
    code: ({ origin, key, model }) => `// npm install openai, then: node hello.mjs
import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' })

const stream = await client.responses.create({ model: '${model}', input: 'Say hello.', stream: true })
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}`,
  },
  {
    name: 'anthropic',
    label: 'Anthropic',
    code: ({ origin, key, model }) => `# pip install anthropic
from anthropic import Anthropic

client = Anthropic(base_url="${origin}/compat", api_key="${key}")

with client.messages.stream(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Say hello."}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`,
  },
  {
    name: 'codex',
    label: 'Codex',
    code: ({ origin, key, model }) => `# ~/.codex/config.toml
model = "${model}"
model_provider = "sluice"
web_search = "disabled"

[model_providers.sluice]
name = "Sluice"
base_url = "${origin}/v1"
env_key = "SLUICE_API_KEY"
wire_api = "responses"

# then, in a shell:
#   export SLUICE_API_KEY=${key}
#   codex`,
  },
  {
    name: 'claude',
    label: 'Claude Code',
    code: ({ origin, key, model }) => `export ANTHROPIC_BASE_URL="${origin}/compat"
export ANTHROPIC_AUTH_TOKEN="${key}"
export ANTHROPIC_MODEL="${model}"
claude`,
  },
  {
    name: 'langchain',
    label: 'LangChain',
    code: ({ origin, key, model }) => `# pip install langchain-openai
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(
    base_url="${origin}/v1",
    api_key="${key}",
    model="${model}",
    use_responses_api=True,
)
for chunk in llm.stream("Say hello."):
    print(chunk.text, end="", flush=True)`,
  },
  {
    name: 'curl',
    label: 'curl',
    code: ({ origin, key, model }) => `curl -N ${origin}/v1/responses \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "input": "Say hello.", "stream": true}'`,
  },
]
