import type { HostedToolItem } from '#inference/events.ts'
import { readString } from '#inference/upstream-fields.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { readInput } from './wire.ts'

type Call = { name: string; serverLabel: string; input: string }
type Describe = (call: Call, result: JsonObject | null) => HostedToolItem

/** Returns null for a tool without a corresponding item type; relayed frames contain it anyway. */
export function createHostedTool(shell: JsonObject): HostedTool | null {
  const name = readString(shell['name'])
  const describe = shell['type'] === 'mcp_tool_use' ? mcpCall : serverTools[name]
  return describe === undefined ? null : new HostedTool(shell, describe)
}

/** A tool that ran at the upstream: the block of its call and, if it follows directly, of its result. */
export class HostedTool {
  readonly #describe: Describe
  readonly #id: string
  readonly #name: string
  readonly #serverLabel: string
  readonly #initialInput: string
  #streamedInput = ''
  #result: JsonObject | null = null

  constructor(shell: JsonObject, describe: Describe) {
    this.#describe = describe
    this.#id = readString(shell['id'])
    this.#name = readString(shell['name'])
    this.#serverLabel = readString(shell['server_name'])
    this.#initialInput = readInput(shell['input'])
  }

  /** The current state of the item. */
  item(): HostedToolItem {
    const call = this.#call()
    return {
      ...this.#describe(call, null),
      // Deltas append to the arguments.
      ...(this.streamsInput() ? { arguments: call.input } : {}),
      status: 'in_progress',
    }
  }

  /** Whether its input is emitted in pieces. */
  streamsInput(): boolean {
    return this.#describe === mcpCall
  }

  appendInput(text: string) {
    this.#streamedInput += text
  }

  /** Accepts the block if it is the result of this call. */
  acceptResult(block: JsonObject): boolean {
    if (block['tool_use_id'] !== this.#id || this.#result !== null) return false
    this.#result = block
    return true
  }

  finalItem(): HostedToolItem {
    return { status: 'completed', ...this.#describe(this.#call(), this.#result) }
  }

  #call(): Call {
    const input = this.#streamedInput === '' ? this.#initialInput : this.#streamedInput
    return { name: this.#name, serverLabel: this.#serverLabel, input }
  }
}

const webSearch: Describe = ({ input }, result) => {
  const query = readString(asRecord(parseJson(input))['query'])
  const found = result?.['content']
  const sources = Array.isArray(found) ? found.filter(isRecord) : []
  return {
    type: 'web_search_call',
    action: {
      type: 'search',
      query,
      ...(sources.length === 0
        ? {}
        : { sources: sources.map(({ url }) => ({ type: 'url', url: readString(url) })) }),
    },
  }
}

const webFetch: Describe = ({ input }) => ({
  type: 'web_search_call',
  action: { type: 'open_page', url: readString(asRecord(parseJson(input))['url']) },
})

const codeExecution: Describe = ({ input }, result) => {
  const fields = asRecord(parseJson(input))
  const content = asRecord(result?.['content'])
  const logs = [content['stdout'], content['stderr']].map(readString).filter((log) => log !== '')
  return {
    type: 'code_interpreter_call',
    code: readString(fields['code']) || readString(fields['command']) || input,
    // The format requires an id, and the upstream's container is not accessible here.
    container_id: '',
    outputs: logs.map((text) => ({ type: 'logs', logs: text })),
  }
}

const serverTools: Readonly<Record<string, Describe>> = {
  web_search: webSearch,
  web_fetch: webFetch,
  code_execution: codeExecution,
  bash_code_execution: codeExecution,
  text_editor_code_execution: codeExecution,
}

const mcpCall: Describe = ({ name, serverLabel, input }, result) => {
  const text = readResult(result?.['content'])
  const isFailed = result?.['is_error'] === true
  return {
    type: 'mcp_call',
    name,
    server_label: serverLabel,
    arguments: input === '' ? '{}' : input,
    output: isFailed || result === null ? null : text,
    error: isFailed ? text : null,
    ...(isFailed ? { status: 'failed' } : {}),
  }
}

function readResult(content: unknown): string {
  if (typeof content === 'string') return content
  const parts = Array.isArray(content) ? content.filter(isRecord) : []
  return parts.map(({ text }) => readString(text)).join('\n')
}
