import { expect } from 'bun:test'
import { asRecord, isRecord, type JsonObject, parseJson } from '#lib/json.ts'

/** Validates the blocks of a message, streamed and complete, independently of the renderer. */

/** The block types that clients know, with their delta types. */
const deltasOf: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta', 'citations_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  redacted_thinking: [],
  tool_use: ['input_json_delta'],
  server_tool_use: ['input_json_delta'],
  mcp_tool_use: ['input_json_delta'],
  compaction: ['compaction_delta'],
  container_upload: [],
  mcp_tool_result: [],
  web_search_tool_result: [],
  web_fetch_tool_result: [],
  code_execution_tool_result: [],
  bash_code_execution_tool_result: [],
  text_editor_code_execution_tool_result: [],
  tool_search_tool_result: [],
  advisor_tool_result: [],
}

const citationFields: Readonly<Record<string, readonly string[]>> = {
  web_search_result_location: ['url', 'cited_text', 'encrypted_index'],
  char_location: ['cited_text'],
  page_location: ['cited_text'],
  content_block_location: ['cited_text'],
  search_result_location: ['source', 'cited_text'],
}

/** One block of a stream, from its start to its stop. */
export type StreamedBlock = {
  readonly shell: JsonObject
  readonly deltas: readonly JsonObject[]
}

/** The block that the events add up to. `mayBeCut`: whether its input may be incomplete. */
export function checkStreamedBlock(
  streamed: StreamedBlock,
  { mayBeCut }: { mayBeCut: boolean },
): JsonObject {
  const { shell, deltas } = streamed
  checkShell(streamed)
  const allowed = deltasOf[String(shell['type'])]
  for (const { type } of deltas)
    expect(allowed, `${type} in ${shell['type']}`).toContain(String(type))
  const signed = deltas.findIndex(({ type }) => type === 'signature_delta')
  if (signed !== -1) expect(signed, 'the signature is the last delta').toBe(deltas.length - 1)
  const block = foldBlock(shell, deltas)
  const json = join(deltas, 'input_json_delta', 'partial_json')
  const isJson = json === '' || isRecord(parseJson(json))
  if (!mayBeCut) expect(isJson, `input is an object: ${json}`).toBe(true)
  checkBlock(block, { isEmptyAllowed: mayBeCut })
  return block
}

/** The start of a block contains the fields without deltas, and no others. */
function checkShell({ shell, deltas }: StreamedBlock): void {
  const { type } = shell
  if (type === 'text') expect(shell['text']).toBe('')
  if (type === 'text') expect(shell['citations'] ?? []).toEqual([])
  if (type === 'thinking') expect(shell['thinking']).toBe('')
  if (type === 'thinking') expect(shell['signature'] ?? '').toBe('')
  if (join(deltas, 'input_json_delta', 'partial_json') !== '') expect(shell['input']).toEqual({})
}

function foldBlock(shell: JsonObject, deltas: readonly JsonObject[]): JsonObject {
  const block = { ...shell }
  const text = join(deltas, 'text_delta', 'text')
  const thinking = join(deltas, 'thinking_delta', 'thinking')
  const json = join(deltas, 'input_json_delta', 'partial_json')
  const signature = join(deltas, 'signature_delta', 'signature')
  const compaction = join(deltas, 'compaction_delta', 'content')
  const citations = deltas.flatMap(({ citation }) => (citation === undefined ? [] : [citation]))
  if (text !== '') block['text'] = text
  if (thinking !== '') block['thinking'] = thinking
  if (signature !== '') block['signature'] = signature
  if (compaction !== '') block['content'] = compaction
  if (citations.length > 0) block['citations'] = citations
  if (json !== '') block['input'] = asRecord(parseJson(json))
  return block
}

function join(deltas: readonly JsonObject[], type: string, field: string): string {
  return deltas
    .filter((delta) => delta['type'] === type)
    .map((delta) => {
      const text = delta[field]
      if (typeof text !== 'string') throw new Error(`${type} without ${field}`)
      return text
    })
    .join('')
}

/** A block of a complete message. */
export function checkBlock(block: JsonObject, { isEmptyAllowed = false } = {}): void {
  const type = String(block['type'])
  expect(Object.keys(deltasOf), 'clients fail at a block that they do not know').toContain(type)
  if (type === 'text') checkText(block, isEmptyAllowed)
  if (type === 'thinking') {
    expect(typeof block['thinking']).toBe('string')
    expect(typeof (block['signature'] ?? '')).toBe('string')
  }
  if (type === 'redacted_thinking') expect(block['data']).toBeString()
  if (type.endsWith('tool_use')) checkToolUse(block)
  if (type.endsWith('_result')) {
    expect(block['tool_use_id']).toMatch(/^[A-Za-z0-9_-]+$/)
    expect(block['content']).toBeDefined()
  }
  if (type === 'mcp_tool_result') expect(block['is_error']).toBeBoolean()
}

function checkText(block: JsonObject, isEmptyAllowed: boolean): void {
  const citations = block['citations'] ?? []
  if (!Array.isArray(citations)) throw new Error('citations are no list')
  const isEmpty = block['text'] === '' && citations.length === 0
  if (!isEmptyAllowed) expect(isEmpty, 'a text says something').toBe(false)
  for (const citation of citations) {
    const fields = citationFields[asRecord(citation)['type'] as string]
    expect(fields, 'a citation that clients know').toBeDefined()
    for (const field of fields ?? []) expect(asRecord(citation)[field]).toBeString()
  }
}

function checkToolUse(block: JsonObject): void {
  const { id, name, input, caller } = block
  expect(id, 'an id that may be sent back').toMatch(/^[A-Za-z0-9_-]+$/)
  expect(name).toMatch(/./)
  expect(isRecord(input), 'input is an object').toBe(true)
  if (caller !== undefined) expect(asRecord(caller)['type']).toBeString()
  if (block['type'] === 'mcp_tool_use') expect(block['server_name']).toBeString()
}

/** The rules across all blocks of a message. */
export function checkContent(content: readonly JsonObject[]): void {
  const calls = content.filter(({ type }) => String(type).endsWith('tool_use'))
  const ids = calls.map(({ id }) => id)
  expect(new Set(ids).size, 'every id of a call is unique').toBe(ids.length)
  // Results of other types may belong to an earlier message; clients fail without these.
  for (const { type, tool_use_id: id } of content) {
    const needsCall = type === 'mcp_tool_result' || type === 'web_search_tool_result'
    if (needsCall) expect(ids, 'a result has its call').toContain(id)
  }
}
