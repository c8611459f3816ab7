import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '#lib/json.ts'
import { recordedPayloads, recordedStreamNames } from '#test/support/recordings.ts'
import { renderReads } from '#test/support/rendering.ts'
import { checkStream } from '#test/support/response-frames.ts'

/** The events of tools that a native upstream runs, as the clients of the gateway receive them. */

const encode = (payloads: readonly JsonObject[]) =>
  Buffer.from(payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join(''))

const framesOf = (payloads: readonly JsonObject[]) =>
  checkStream(renderReads('responses', [encode(payloads)])).frames

/** The events of these types, without the fields that the gateway sets. */
const eventsOf = (frames: readonly JsonObject[], types: RegExp) =>
  frames
    .filter(({ type }) => types.test(String(type)))
    .map(({ sequence_number, item_id, obfuscation, ...event }) => event)

const added = (item: JsonObject, output_index = 0) => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (item: JsonObject, output_index = 0) => ({
  ...added(item, output_index),
  type: 'response.output_item.done',
})
const completed = (...output: JsonObject[]) => ({
  type: 'response.completed',
  response: { id: 'resp_up', status: 'completed', output, usage: null },
})

test.each([
  ['code_interpreter_call', 'code_interpreter_call_code', 'code'],
  ['mcp_call', 'mcp_call_arguments', 'arguments'],
])('the input of a %s is streamed', (type, stem, field) => {
  const place = { item_id: 'up_1', output_index: 0 }
  const item = {
    type,
    id: 'up_1',
    status: 'in_progress',
    name: 'run',
    server_label: 'a',
    [field]: '',
  }
  const whole = { ...item, status: 'completed', [field]: '{"a":1}' }
  const frames = framesOf([
    added(item),
    { type: `response.${stem}.delta`, ...place, delta: '{"a":' },
    { type: `response.${stem}.delta`, ...place, delta: '1}' },
    { type: `response.${stem}.done`, ...place, [field]: '{"a":1}' },
    { type: `response.${type}.completed`, ...place },
    done(whole),
    completed(whole),
  ])
  const events = eventsOf(frames, new RegExp(`^response\\.${stem}\\.`))
  expect(events).toEqual([
    { type: `response.${stem}.delta`, output_index: 0, delta: '{"a":' },
    { type: `response.${stem}.delta`, output_index: 0, delta: '1}' },
    { type: `response.${stem}.done`, output_index: 0, [field]: '{"a":1}' },
  ])
  const ids = frames.flatMap(({ item_id }) => (item_id === undefined ? [] : [item_id]))
  expect(new Set(ids).size).toBe(1)
  expect(ids).not.toContain('up_1')
})

test('input that arrives only at its end is one delta', () => {
  const item = { type: 'mcp_call', id: 'up_1', name: 'run', server_label: 'a', arguments: '' }
  const frames = framesOf([
    added(item),
    { type: 'response.mcp_call_arguments.done', output_index: 0, arguments: '{}' },
    done({ ...item, arguments: '{}' }),
    completed(),
  ])
  expect(eventsOf(frames, /mcp_call_arguments/)).toEqual([
    { type: 'response.mcp_call_arguments.delta', output_index: 0, delta: '{}' },
    { type: 'response.mcp_call_arguments.done', output_index: 0, arguments: '{}' },
  ])
})

test('input of another type, or after the end of its item, is not added to a tool', () => {
  const code = { type: 'code_interpreter_call', id: 'ci_1', code: '', status: 'in_progress' }
  const mcp = { type: 'mcp_call', id: 'mcp_1', name: 'run', server_label: 'a', arguments: '' }
  const late = { item_id: 'mcp_1', output_index: 1 }
  const frames = framesOf([
    added(code),
    {
      type: 'response.mcp_call_arguments.delta',
      item_id: 'ci_1',
      output_index: 0,
      delta: '{"a":1}',
    },
    added(mcp, 1),
    { type: 'response.mcp_call_arguments.delta', ...late, delta: '{}' },
    done({ ...mcp, arguments: '{}' }, 1),
    { type: 'response.mcp_call_arguments.delta', ...late, delta: 'more' },
    done({ ...code, status: 'completed' }),
    completed(),
  ])
  expect(eventsOf(frames, /(code|arguments)\.delta$/)).toEqual([
    { type: 'response.mcp_call_arguments.delta', output_index: 1, delta: '{}' },
  ])
})

test('partial images, and commands and their output, are forwarded as they are', () => {
  const image = { type: 'image_generation_call', id: 'ig_1', status: 'in_progress', result: null }
  const action = { commands: ['ls -l'], timeout_ms: null, max_output_length: null }
  const shell = { type: 'shell_call', id: 'sh_1', call_id: 'c', status: 'in_progress', action }
  const output = {
    type: 'shell_call_output',
    id: 'so_1',
    call_id: 'c',
    output: [],
    status: 'in_progress',
  }
  const partial = { partial_image_b64: 'iVBO', partial_image_index: 0 }
  const command = { output_index: 1, command_index: 0 }
  const results = { output_index: 2, command_index: 0 }
  const forwarded = [
    { type: 'response.image_generation_call.partial_image', output_index: 0, ...partial },
    { type: 'response.shell_call_command.added', ...command, command: '' },
    { type: 'response.shell_call_command.delta', ...command, delta: 'ls -l' },
    { type: 'response.shell_call_command.done', ...command, command: 'ls -l' },
    { type: 'response.shell_call_output_content.delta', ...results, delta: { stdout: 'a' } },
    { type: 'response.shell_call_output_content.done', ...results, output: [{ stdout: 'a' }] },
  ]
  const [ofImage, ...ofShell] = forwarded
  const frames = framesOf([
    added(image),
    { ...ofImage, item_id: 'ig_1', obfuscation: 'x' },
    done({ ...image, status: 'completed', result: 'iVBORw' }),
    added(shell, 1),
    ...ofShell.slice(0, 3),
    done({ ...shell, status: 'completed' }, 1),
    added(output, 2),
    ...ofShell.slice(3).map((event) => ({ ...event, item_id: 'so_1' })),
    done({ ...output, status: 'completed' }, 2),
    completed(),
  ])
  expect(eventsOf(frames, /partial_image|shell_call_/)).toEqual(forwarded)
  const commands = frames.filter(({ type }) => String(type).includes('shell_call_command'))
  expect(commands.every((frame) => !('item_id' in frame))).toBe(true)
  expect(JSON.stringify(frames)).not.toContain('ig_1')
})

test('the citation of a file in a container keeps its container and range', () => {
  const citation = {
    type: 'container_file_citation',
    container_id: 'cntr_1',
    file_id: 'cfile_1',
    filename: 'a.csv',
    start_index: 1,
    end_index: 4,
  }
  const text = { type: 'output_text', text: 'See a.csv', annotations: [citation] }
  const message = { type: 'message', id: 'msg_1', role: 'assistant', content: [text] }
  const frames = framesOf([completed(message)])
  const annotations = frames.flatMap(({ annotation }) => annotation ?? [])
  expect(annotations).toEqual([citation])
})

const recorded: Readonly<Record<string, RegExp>> = {
  'openai-code-interpreter-tool.1.chunks.txt': /code_interpreter_call/,
  'openai-image-generation-tool.1.chunks.txt': /image_generation_call/,
  'openai-mcp-tool-approval.4.chunks.txt': /mcp_call/,
}

describe.each(recordedStreamNames('responses').filter((name) => name in recorded))('%s', (name) => {
  test('every event of the tool arrives', () => {
    const payloads = recordedPayloads('responses', name).map((line) => JSON.parse(line))
    // A stage may be reported twice, and is forwarded once.
    const typesIn = (frames: readonly JsonObject[]) => [
      ...new Set(eventsOf(frames, recorded[name] ?? /^$/).map(({ type }) => type)),
    ]
    expect(typesIn(payloads)).not.toEqual([])
    expect(typesIn(framesOf(payloads))).toEqual(typesIn(payloads))
  })
})
