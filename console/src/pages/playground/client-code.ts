import type { JsonObject, Surface } from './answer.ts'

export const codeClients = ['curl', 'python', 'node'] as const
export type CodeClient = (typeof codeClients)[number]

export const codeLabels: Readonly<Record<Surface, Readonly<Record<CodeClient, string>>>> = {
  responses: { curl: 'curl', python: 'OpenAI · Python', node: 'OpenAI · Node' },
  messages: { curl: 'curl', python: 'Anthropic · Python', node: 'Anthropic · Node' },
}

/** Attachments would fill the screen. */
const dataCharsMax = 200

/** The same request as a program. */
export function renderCode(
  client: CodeClient,
  { surface, request, origin }: { surface: Surface; request: JsonObject; origin: string },
): string {
  const body = shortenData(request) as JsonObject
  const { stream: _, ...rest } = body
  if (client === 'curl') return renderCurl(surface, body, origin)
  if (surface === 'responses') {
    return client === 'python'
      ? `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="YOUR_API_KEY")

stream = client.responses.create(
${pythonArguments(body)}
)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`
      : `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: 'YOUR_API_KEY' })

const stream = await client.responses.create(${JSON.stringify(body, null, 2)})
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
}`
  }
  return client === 'python'
    ? `from anthropic import Anthropic

client = Anthropic(base_url="${origin}/compat", api_key="YOUR_API_KEY")

with client.messages.stream(
${pythonArguments(rest)}
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`
    : `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${origin}/compat', apiKey: 'YOUR_API_KEY' })

const stream = client.messages.stream(${JSON.stringify(rest, null, 2)})
stream.on('text', (text) => process.stdout.write(text))
await stream.finalMessage()`
}

function renderCurl(surface: Surface, body: JsonObject, origin: string): string {
  const path = surface === 'responses' ? '/v1/responses' : '/compat/v1/messages'
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''")
  return `curl -N ${origin}${path} \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '${json}'`
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
