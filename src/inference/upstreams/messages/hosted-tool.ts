import type { HostedToolItem } from '#inference/events.ts'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'
import { readInput, readText } from './wire.ts'

type Call = { name: string; serverLabel: string; input: string }
type Describe = (call: Call, result: JsonObject | null) => HostedToolItem

/** null for a tool that no item type stands for; a caller of the same protocol hears of it anyway. */
export function createHostedTool(shell: JsonObject): HostedTool | null {
  const name = readText(shell['name'])
  const describe = shell['type'] === 'mcp_tool_use' ? mcpCall : serverTools[name]
  return describe === undefined ? null : new HostedTool(shell, describe)
}

/**
 * A tool that ran at the upstream, told by two blocks: its call, and what came of it. A result that
 * does not follow at once is not waited for.
 */
export class HostedTool {
  readonly #describe: Describe
  readonly #id: string
  readonly #name: string
  readonly #serverLabel: string
  readonly #given: string
  #text = ''
  #result: JsonObject | null = null

  constructor(shell: JsonObject, describe: Describe) {
    this.#describe = describe
    this.#id = readText(shell['id'])
    this.#name = readText(shell['name'])
    this.#serverLabel = readText(shell['server_name'])
    this.#given = readInput(shell['input'])
  }

  /** The item as it is known now. */
  item(): HostedToolItem {
    const call = this.#call()
    return {
      ...this.#describe(call, null),
      // Deltas add to them, so there are none yet.
      ...(this.tellsInput() ? { arguments: call.input } : {}),
      status: 'in_progress',
    }
  }

  /** Whether the pieces of its input are told as they come. */
  tellsInput(): boolean {
    return this.#describe === mcpCall
  }

  takeInput(text: string) {
    this.#text += text
  }

  /** Whether the block is the result of this call. */
  takeResult(block: JsonObject): boolean {
    if (block['tool_use_id'] !== this.#id || this.#result !== null) return false
    this.#result = block
    return true
  }

  ended(): HostedToolItem {
    return { status: 'completed', ...this.#describe(this.#call(), this.#result) }
  }

  #call(): Call {
    const input = this.#text === '' ? this.#given : this.#text
    return { name: this.#name, serverLabel: this.#serverLabel, input }
  }
}

const webSearch: Describe = ({ input }, result) => {
  const query = readText(asRecord(parseJson(input))['query'])
  const found = result?.['content']
  const sources = Array.isArray(found) ? found.filter(isRecord) : []
  return {
    type: 'web_search_call',
    action: {
      type: 'search',
      query,
      ...(sources.length === 0
        ? {}
        : { sources: sources.map(({ url }) => ({ type: 'url', url: readText(url) })) }),
    },
  }
}

const webFetch: Describe = ({ input }) => ({
  type: 'web_search_call',
  action: { type: 'open_page', url: readText(asRecord(parseJson(input))['url']) },
})

const codeExecution: Describe = ({ input }, result) => {
  const given = asRecord(parseJson(input))
  const content = asRecord(result?.['content'])
  const logs = [content['stdout'], content['stderr']].map(readText).filter((log) => log !== '')
  return {
    type: 'code_interpreter_call',
    code: readText(given['code']) || readText(given['command']) || input,
    // The format demands one, and that of the upstream is none of ours.
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
  return parts.map(({ text }) => readText(text)).join('\n')
}
