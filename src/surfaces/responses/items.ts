import type { Citation, GenerationEvent, HostedToolItem, TokenLogprob } from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead, type FrameWriter } from './frames.ts'

/** An output item on the wire; every kind has an id of ours, which never changes. */
export type OutputItem = {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** The events that belong to a block, and so to an item. */
type BlockEvent = Extract<GenerationEvent, { block: number }>

/** One block of the generation while it is rendered. Methods return SSE frames. */
type OpenItem = {
  start(): string
  push(event: BlockEvent): string
  end(event: BlockEvent): string
  /** The item as it stands now. */
  item(status: ItemStatus): OutputItem
}

type ItemContext = {
  frames: FrameWriter
  outputIndex: number
  /** Whether the caller asked for sealed reasoning. */
  includeSealed: boolean
}

/** The output of one response: blocks become items, in order, one at a time. */
export type ItemList = {
  push(event: BlockEvent): string
  /** The items as they stand, with the one that is still open. */
  output(): OutputItem[]
}

export function createItemList(frames: FrameWriter, includeSealed: boolean): ItemList {
  const closed: OutputItem[] = []
  let current: OpenItem | null = null

  return {
    push(event) {
      if (current === null) {
        current = openItem(event, { frames, outputIndex: closed.length, includeSealed })
        return current.start()
      }
      if (!event.type.endsWith('-end')) return current.push(event)
      const written = current.end(event)
      closed.push(current.item('complete' in event && !event.complete ? 'incomplete' : 'completed'))
      current = null
      return written
    },
    output: () => (current === null ? [...closed] : [...closed, current.item('in_progress')]),
  }
}

function openItem(event: BlockEvent, context: ItemContext): OpenItem {
  switch (event.type) {
    case 'text-start':
      return openMessage(event, context)
    case 'reasoning-start':
      return openReasoning(event, context)
    case 'tool-call-start':
      return openToolCall(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context)
    default:
      throw new Error(`${event.type} opens no item`)
  }
}

type Start<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

function openMessage(start: Start<'text-start'>, { frames, outputIndex }: ItemContext): OpenItem {
  const id = newId('msg_')
  const isRefusal = start.form === 'refusal'
  const place = { item_id: id, output_index: outputIndex, content_index: 0 }
  const deltaType = isRefusal ? 'response.refusal.delta' : 'response.output_text.delta'
  const head = deltaHead(deltaType, isRefusal ? place : { ...place, logprobs: [] })
  const annotations: object[] = []
  const logprobs: object[] = []
  let text = ''

  const part = () =>
    isRefusal
      ? { type: 'refusal', refusal: text }
      : { type: 'output_text', text, annotations, logprobs }
  const item = (as: ItemStatus, content: readonly object[] = [part()]) => ({
    id,
    type: 'message',
    status: as,
    role: 'assistant',
    content,
    ...(start.phase === undefined ? {} : { phase: start.phase }),
  })
  const cite = (citation: Citation) => {
    const annotation = renderCitation(citation)
    annotations.push(annotation)
    return frames.frame('response.output_text.annotation.added', {
      ...place,
      annotation_index: annotations.length - 1,
      annotation,
    })
  }
  const addText = (event: Start<'text-delta'>) => {
    text += event.text
    if (event.logprobs === undefined || isRefusal) return frames.delta(head, event.text)
    const added = event.logprobs.map(renderLogprob)
    logprobs.push(...added)
    return frames.frame(deltaType, { ...place, delta: event.text, logprobs: added })
  }
  return {
    start: () =>
      frames.frame('response.output_item.added', {
        output_index: outputIndex,
        item: item('in_progress', []),
      }) + frames.frame('response.content_part.added', { ...place, part: part() }),
    push(event) {
      if (event.type === 'text-delta') return addText(event)
      assert(event.type === 'citation', `${event.type} in a message`)
      return cite(event.citation)
    },
    end(event) {
      assert(event.type === 'text-end', `${event.type} ends a message`)
      const status = event.complete ? 'completed' : 'incomplete'
      const done = isRefusal
        ? frames.frame('response.refusal.done', { ...place, refusal: text })
        : frames.frame('response.output_text.done', { ...place, text, logprobs })
      return (
        done +
        frames.frame('response.content_part.done', { ...place, part: part() }) +
        frames.frame('response.output_item.done', { output_index: outputIndex, item: item(status) })
      )
    },
    item,
  }
}

function openReasoning(
  start: Start<'reasoning-start'>,
  { frames, outputIndex, includeSealed }: ItemContext,
): OpenItem {
  const id = newId('rs_')
  const parts: string[] = []
  let head = deltaHead('', {})
  let openPart: number | null = null
  let sealed: string | undefined

  const place = () => ({ item_id: id, output_index: outputIndex, summary_index: parts.length - 1 })
  const summaryPart = (text: string) => ({ type: 'summary_text', text })
  const item = () => ({
    id,
    type: 'reasoning',
    summary: parts.map(summaryPart),
    // What the model itself thought goes back whole, so that a replay can give it to the model.
    ...(start.form === 'summary' || parts.length === 0
      ? {}
      : { content: [{ type: 'reasoning_text', text: parts.join('\n\n') }] }),
    ...(sealed !== undefined && includeSealed ? { encrypted_content: sealed } : {}),
  })
  const closePart = () => {
    if (openPart === null) return ''
    openPart = null
    const text = parts.at(-1) ?? ''
    return (
      frames.frame('response.reasoning_summary_text.done', { ...place(), text }) +
      frames.frame('response.reasoning_summary_part.done', { ...place(), part: summaryPart(text) })
    )
  }
  const startPart = (part: number) => {
    const closed = closePart()
    openPart = part
    parts.push('')
    head = deltaHead('response.reasoning_summary_text.delta', place())
    return (
      closed +
      frames.frame('response.reasoning_summary_part.added', { ...place(), part: summaryPart('') })
    )
  }
  return {
    start: () =>
      frames.frame('response.output_item.added', { output_index: outputIndex, item: item() }),
    push(event) {
      assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
      const opened = event.part === openPart ? '' : startPart(event.part)
      parts[parts.length - 1] += event.text
      return opened + frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
      sealed = event.sealed
      return (
        closePart() +
        frames.frame('response.output_item.done', { output_index: outputIndex, item: item() })
      )
    },
    item,
  }
}

function openToolCall(
  { call }: Start<'tool-call-start'>,
  { frames, outputIndex }: ItemContext,
): OpenItem {
  const isCustom = call.form === 'custom'
  const id = newId(isCustom ? 'ctc_' : 'fc_')
  const field = isCustom ? 'input' : 'arguments'
  const stem = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  const place = { item_id: id, output_index: outputIndex }
  const head = deltaHead(`${stem}.delta`, place)
  let text = ''

  const item = (status: ItemStatus) => ({
    id,
    type: isCustom ? 'custom_tool_call' : 'function_call',
    status,
    call_id: call.callId,
    name: call.name,
    [field]: text,
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
  })
  return {
    start: () =>
      frames.frame('response.output_item.added', {
        output_index: outputIndex,
        item: item('in_progress'),
      }),
    push(event) {
      assert(event.type === 'tool-call-delta', `${event.type} in a tool call`)
      text += event.text
      return frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'tool-call-end', `${event.type} ends a tool call`)
      return (
        frames.frame(`${stem}.done`, { ...place, [field]: text }) +
        frames.frame('response.output_item.done', {
          output_index: outputIndex,
          item: item(event.complete ? 'completed' : 'incomplete'),
        })
      )
    },
    item,
  }
}

/** The progress events that clients know; any other event type breaks strict ones. */
const hostedStages: Readonly<Record<string, readonly string[]>> = {
  web_search_call: ['in_progress', 'searching', 'completed'],
  file_search_call: ['in_progress', 'searching', 'completed'],
  code_interpreter_call: ['in_progress', 'interpreting', 'completed'],
  image_generation_call: ['in_progress', 'generating', 'completed'],
  mcp_call: ['in_progress', 'completed', 'failed'],
  mcp_list_tools: ['in_progress', 'completed', 'failed'],
}

function openHostedTool(
  start: Start<'hosted-tool-start'>,
  { frames, outputIndex }: ItemContext,
): OpenItem {
  const id = newId(`${start.item.type.replace(/_call$/, '')}_`)
  let current: HostedToolItem = start.item
  const item = () => ({ ...current, id })
  return {
    start: () =>
      frames.frame('response.output_item.added', { output_index: outputIndex, item: item() }),
    push(event) {
      assert(event.type === 'hosted-tool-progress', `${event.type} in a hosted tool`)
      if (!hostedStages[current.type]?.includes(event.stage)) return ''
      return frames.frame(`response.${current.type}.${event.stage}`, {
        item_id: id,
        output_index: outputIndex,
      })
    },
    end(event) {
      assert(event.type === 'hosted-tool-end', `${event.type} ends a hosted tool`)
      current = event.item ?? { ...current, status: 'incomplete' }
      return frames.frame('response.output_item.done', { output_index: outputIndex, item: item() })
    },
    item,
  }
}

function renderCitation(citation: Citation): object {
  if (citation.kind === 'file') {
    const { fileId, filename, index } = citation
    return { type: 'file_citation', file_id: fileId, filename, index }
  }
  const { url, title, startIndex, endIndex } = citation
  return { type: 'url_citation', url, title, start_index: startIndex, end_index: endIndex }
}

function renderLogprob(logprob: TokenLogprob): object {
  const { token, bytes, top } = logprob
  return { token, logprob: logprob.logprob, bytes, top_logprobs: top }
}
