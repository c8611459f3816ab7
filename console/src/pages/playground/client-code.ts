import type { JsonObject, Surface } from './surface.ts'

export type CodeClient =
  | ('openai-curl' | 'openai-python' | 'openai-node' | 'langchain' | 'codex')
  | ('anthropic-curl' | 'anthropic-python' | 'anthropic-node' | 'claude')

export const codeClients: Readonly<Record<Surface, readonly CodeClient[]>> = {
  responses: ['openai-curl', 'openai-python', 'openai-node', 'langchain', 'codex'],
  messages: ['anthropic-curl', 'anthropic-python', 'anthropic-node', 'claude'],
}

export const codeLabels: Readonly<Record<CodeClient, string>> = {
  'openai-curl': 'curl',
  'openai-python': 'OpenAI · Python',
  'openai-node': 'OpenAI · Node',
  langchain: 'LangChain',
  codex: 'Codex',
  'anthropic-curl': 'curl',
  'anthropic-python': 'Anthropic · Python',
  'anthropic-node': 'Anthropic · Node',
  claude: 'Claude Code',
}

export type CodeRequest = {
  readonly request: JsonObject
  /** The last question, for clients that write the rest of the request themselves. */
  readonly text: string
  /** Of the gateway. */
  readonly origin: string
}

/** Attachments would fill the screen. */
const dataCharsMax = 200

/** The same request as a program. */
export function renderCode(client: CodeClient, given: CodeRequest): string {
  const request = shortenData(given.request) as JsonObject
  return programs[client]({ ...given, request })
}

const programs: Readonly<Record<CodeClient, (given: CodeRequest) => string>> = {
  'openai-curl': (given) => renderCurl('/v1/responses', given),
  'openai-python': ({ request, origin }) => `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="YOUR_API_KEY")

stream = client.responses.create(
${pythonArguments(request)}
)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`,
  'openai-node': ({ request, origin }) => `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: 'YOUR_API_KEY' })

const stream = await client.responses.create(${JSON.stringify(request, null, 2)})
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}`,
  langchain({ request: { model, input, stream: _, ...options }, origin }) {
    return `# pip install langchain-openai
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(
    base_url="${origin}/v1",
    api_key="YOUR_API_KEY",
    model=${toPython(model, 1)},
    use_responses_api=True,
)
for chunk in llm.stream(
    ${toPython(typeof input === 'string' ? input : chatMessages(input as JsonObject[]), 1)},
${pythonArguments(options)}
):
    print(chunk.text, end="", flush=True)`.replace('\n\n):', '\n):')
  },
  codex({ request: { model, reasoning }, text, origin }) {
    const provider = `{name="Sluice",base_url="${origin}/v1",env_key="SLUICE_API_KEY",wire_api="responses"}`
    const effort = (reasoning as { effort?: string } | undefined)?.effort
    return `# Codex sends instructions and tools of its own.
export SLUICE_API_KEY=YOUR_API_KEY
codex exec --model ${quote(model)} \\
  --config model_provider=sluice \\
  --config ${quote(`model_providers.sluice=${provider}`)} \\
  --config web_search=disabled \\
${effort === undefined ? '' : `  --config model_reasoning_effort=${effort} \\\n`}  ${quote(text)}`
  },
  'anthropic-curl': (given) => renderCurl('/compat/v1/messages', given),
  'anthropic-python': ({
    request: { stream: _, temperature, ...request },
    origin,
  }) => `from anthropic import Anthropic

client = Anthropic(base_url="${origin}/compat", api_key="YOUR_API_KEY")

with client.messages.stream(
${pythonArguments({
  ...request,
  // Version 2 of the package has no argument for it.
  ...(temperature === undefined ? {} : { extra_body: { temperature } }),
})}
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`,
  'anthropic-node': ({
    request: { stream: _, ...request },
    origin,
  }) => `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${origin}/compat', apiKey: 'YOUR_API_KEY' })

const stream = client.messages.stream(${JSON.stringify(request, null, 2)})
stream.on('text', (text) => process.stdout.write(text))
await stream.finalMessage()`,
  claude({ request: { model, system }, text, origin }) {
    return `# Claude Code sends instructions and tools of its own.
export ANTHROPIC_BASE_URL=${quote(`${origin}/compat`)}
export ANTHROPIC_AUTH_TOKEN=YOUR_API_KEY
claude --print --model ${quote(model)} \\
${system === undefined ? '' : `  --append-system-prompt ${quote(system)} \\\n`}  ${quote(text)}`
  },
}

function renderCurl(path: string, { request, origin }: CodeRequest): string {
  return `curl -N ${origin}${path} \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d ${quote(JSON.stringify(request, null, 2))}`
}

/** For a shell. */
function quote(value: unknown): string {
  return `'${String(value).replaceAll("'", "'\\''")}'`
}

/** Items of the Responses API as messages of the chat format, which LangChain reads. */
function chatMessages(items: readonly JsonObject[]): JsonObject[] {
  return items.map((item) => {
    const { type, call_id: id, name, arguments: args, output, content } = item
    if (type === 'function_call_output') return { role: 'tool', tool_call_id: id, content: output }
    if (type === 'function_call') {
      const call = { id, type: 'function', function: { name, arguments: args } }
      return { role: 'assistant', content: '', tool_calls: [call] }
    }
    if (!Array.isArray(content)) return item
    return { ...item, content: (content as JsonObject[]).map(chatContent) }
  })
}

function chatContent(part: JsonObject): JsonObject {
  if (part['type'] === 'input_image') {
    return { type: 'image_url', image_url: { url: part['image_url'] } }
  }
  if (part['type'] === 'input_file') {
    return { type: 'file', file: { filename: part['filename'], file_data: part['file_data'] } }
  }
  return { type: 'text', text: part['text'] }
}

function pythonArguments(body: JsonObject): string {
  return Object.entries(body)
    .map(([name, value]) => `    ${name}=${toPython(value, 1)},`)
    .join('\n')
}

function toPython(value: unknown, depth: number): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const inner = '    '.repeat(depth + 1)
  const outer = '    '.repeat(depth)
  const isList = Array.isArray(value)
  const lines = isList
    ? value.map((entry) => inner + toPython(entry, depth + 1))
    : Object.entries(value).map(
        ([name, entry]) => `${inner}${JSON.stringify(name)}: ${toPython(entry, depth + 1)}`,
      )
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  return lines.length === 0 ? `${open}${close}` : `${open}\n${lines.join(',\n')},\n${outer}${close}`
}

function shortenData(value: unknown): unknown {
  if (typeof value === 'string') {
    const isData = value.length > dataCharsMax && /^data:|^[\w+/=]+$/.test(value)
    return isData ? `${value.slice(0, 48)}…` : value
  }
  if (Array.isArray(value)) return value.map(shortenData)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortenData(one)]))
}
