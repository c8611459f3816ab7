import type { JsonObject } from '#lib/json.ts'
import type { Frame } from './response-frames.ts'

/** A stream with an item of every kind, written by hand in the published format. */

const head = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'm',
  store: true,
}
const open = { completed_at: null, error: null, incomplete_details: null, usage: null }

type Sample = { frames: Frame[]; output: JsonObject[] }

export function sampleFrames(): Frame[] {
  const sample: Sample = { frames: [], output: [] }
  const say = (type: string, fields: JsonObject) => sample.frames.push({ type, ...fields })
  const state = (status: string) => ({ ...head, ...open, status, output: [...sample.output] })
  say('response.created', { response: state('queued') })
  say('response.queued', { response: state('queued') })
  say('response.in_progress', { response: state('in_progress') })
  addReasoning(sample)
  addHosted(sample)
  addMcpCall(sample)
  addCall(sample, { type: 'function_call', stem: 'function_call_arguments', field: 'arguments' })
  addCall(sample, { type: 'custom_tool_call', stem: 'custom_tool_call_input', field: 'input' })
  say('response.in_progress', { response: state('in_progress') })
  addMessage(sample)
  say('response.completed', {
    response: { ...state('completed'), completed_at: 2, usage: { total_tokens: 1 } },
  })
  return number(sample.frames)
}

/** Renumbers frames from `first`. */
export function number(frames: readonly Frame[], first = 0): Frame[] {
  return frames.map((frame, at) => ({ ...frame, sequence_number: first + at }))
}

/** Frames as they are sent. */
export function wireOf(frames: readonly Frame[]): string {
  const events = frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`)
  return `${events.join('')}data: [DONE]\n\n`
}

/** One item: `added`, the frames inside, `done`. */
function addItem(
  { frames, output }: Sample,
  item: { added: JsonObject; inner: (place: JsonObject) => Frame[]; done: JsonObject },
): void {
  const id = `item_${output.length}`
  const place = { output_index: output.length }
  const [added, done] = [
    { ...item.added, id },
    { ...item.done, id },
  ]
  frames.push(
    { type: 'response.output_item.added', ...place, item: added },
    ...item.inner({ ...place, item_id: id }),
    { type: 'response.output_item.done', ...place, item: done },
  )
  output.push(done)
}

function addReasoning(sample: Sample): void {
  const part = { type: 'summary_text', text: 'Hm, yes.' }
  const stem = 'response.reasoning_summary'
  addItem(sample, {
    added: { type: 'reasoning', summary: [] },
    inner: (item) => {
      const place = { ...item, summary_index: 0 }
      return [
        { type: `${stem}_part.added`, ...place, part: { ...part, text: '' } },
        { type: `${stem}_text.delta`, ...place, delta: 'Hm, ' },
        { type: `${stem}_text.delta`, ...place, delta: 'yes.' },
        { type: `${stem}_text.done`, ...place, text: part.text },
        { type: `${stem}_part.done`, ...place, part },
      ]
    },
    done: { type: 'reasoning', summary: [part] },
  })
}

function addHosted(sample: Sample): void {
  const kinds: [type: string, stages: string[], fields: JsonObject][] = [
    ['mcp_list_tools', ['in_progress', 'completed'], { server_label: 's', tools: [] }],
    ['file_search_call', ['in_progress', 'searching', 'completed'], { queries: ['q'] }],
    ['mcp_approval_request', [], { server_label: 's', name: 'n', arguments: '{}' }],
    ['compaction', [], { encrypted_content: 'sealed' }],
  ]
  for (const [type, stages, fields] of kinds) {
    addItem(sample, {
      added: { type, ...fields },
      inner: (place) => stages.map((stage) => ({ type: `response.${type}.${stage}`, ...place })),
      done: { type, ...fields },
    })
  }
}

function addMcpCall(sample: Sample): void {
  const call = { type: 'mcp_call', server_label: 's', name: 'n', output: null, error: null }
  addItem(sample, {
    added: { ...call, status: 'in_progress', arguments: '' },
    inner: (place) => [
      { type: 'response.mcp_call.in_progress', ...place },
      { type: 'response.mcp_call_arguments.delta', ...place, delta: '{"a":' },
      { type: 'response.mcp_call_arguments.delta', ...place, delta: '1}' },
      { type: 'response.mcp_call_arguments.done', ...place, arguments: '{"a":1}' },
      { type: 'response.mcp_call.completed', ...place },
    ],
    done: { ...call, status: 'completed', arguments: '{"a":1}', output: 'found' },
  })
}

function addCall(sample: Sample, form: { type: string; stem: string; field: string }): void {
  const { type, stem, field } = form
  const call = { type, call_id: `call_${type}`, name: 'n' }
  addItem(sample, {
    added: { ...call, status: 'in_progress', [field]: '' },
    inner: (place) => [
      { type: `response.${stem}.delta`, ...place, delta: '{"a"' },
      { type: `response.${stem}.delta`, ...place, delta: ':1}' },
      { type: `response.${stem}.done`, ...place, [field]: '{"a":1}' },
    ],
    done: { ...call, status: 'completed', [field]: '{"a":1}' },
  })
}

function addMessage(sample: Sample): void {
  const message = { type: 'message', role: 'assistant' }
  const citation = { type: 'url_citation', url: 'u', title: 't', start_index: 0, end_index: 1 }
  const empty = { type: 'output_text', text: '', annotations: [], logprobs: [] }
  const part = { ...empty, text: 'So it is.', annotations: [citation] }
  addItem(sample, {
    added: { ...message, status: 'in_progress', content: [] },
    inner: (item) => {
      const place = { ...item, content_index: 0 }
      const text = 'response.output_text'
      return [
        { type: 'response.content_part.added', ...place, part: empty },
        { type: `${text}.delta`, ...place, delta: 'So ', logprobs: [] },
        { type: `${text}.delta`, ...place, delta: 'it is.', logprobs: [] },
        {
          type: `${text}.annotation.added`,
          ...place,
          annotation_index: 0,
          annotation: citation,
        },
        { type: `${text}.done`, ...place, text: part.text, logprobs: [] },
        { type: 'response.content_part.done', ...place, part },
      ]
    },
    done: { ...message, status: 'completed', content: [part] },
  })
}
