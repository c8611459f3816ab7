import {
  type BlockEvent,
  type Citation,
  endOfBlock,
  type GenerationEvent,
  type ToolCallHead,
} from '#inference/events.ts'
import { assert } from '#lib/assert.ts'
import type { ReasoningSeal, TextSeal } from '#sealing/seals.ts'
import type { MessageSink } from './frames.ts'
import { openHostedTool } from './hosted-tool-blocks.ts'
import type { ContentBlock, ThinkingDisplay } from './message.ts'
import { toToolUseId } from './tool-id.ts'

export type EventOf<T extends GenerationEvent['type']> = Extract<GenerationEvent, { type: T }>

/** A block of the generation while it is rendered. Methods return SSE frames. */
export type OpenBlock = {
  /** Absent if the block opens in the sink with its first content. */
  start?(sink: BlockSink): string
  push(sink: BlockSink, event: BlockEvent): string
  end(sink: BlockSink, event: BlockEvent): string
}

export type BlockContext = {
  reasoningSeal: ReasoningSeal
  searchSeal: TextSeal
  thinkingDisplay: ThinkingDisplay
  tally: BlockTally
}

/** Counts of blocks that determine the end of the message. */
export type BlockTally = {
  toolUses: number
  webSearches: number
  hasRefusal: boolean
  /** The types of output that the format has no block for, each once. */
  readonly omitted: Set<string>
}

export type BlockSink = Pick<MessageSink, 'start' | 'delta' | 'cite' | 'stop' | 'isOpen'>

/** Discards blocks whose frames are relayed: every block counts as open, and nothing is written. */
export const silentSink: BlockSink = {
  start: () => '',
  delta: () => '',
  cite: () => '',
  stop: () => '',
  isOpen: () => true,
}

/** The blocks of one message, one at a time. */
export class BlockList {
  readonly #context: BlockContext
  #current: OpenBlock | null = null
  #last: BlockEvent | null = null

  constructor(context: BlockContext) {
    this.#context = context
  }

  push(sink: BlockSink, event: BlockEvent): string {
    this.#last = event
    const current = this.#current
    if (current === null) {
      this.#current = openBlock(event, this.#context)
      return this.#current.start?.(sink) ?? ''
    }
    if (!event.type.endsWith('-end')) return current.push(sink, event)
    const written = current.end(sink, event)
    this.#current = null
    return written
  }

  /** Ends the open block as incomplete. */
  cut(sink: BlockSink): string {
    if (this.#last === null) return ''
    return endOfBlock(this.#last)
      .map((event) => this.push(sink, event))
      .join('')
  }

  /**
   * Continues after relayed frames, which may have left a block open. Returns whether that block can be
   * continued. A hosted tool cannot, since its frames differ, nor can thinking whose frames have ended:
   * its events end later.
   */
  takeOver(leftOpen: boolean): boolean {
    if (this.#current === null || this.#last === null) return false
    const { type } = this.#last
    const isThinking = type.startsWith('reasoning')
    if (type.startsWith('hosted-tool') || (isThinking && !leftOpen)) this.#current = hiddenBlock
    return this.#current !== hiddenBlock
  }
}

/** A block without a representation in the format, or whose frames were relayed. */
const hiddenBlock: OpenBlock = { push: () => '', end: () => '' }

function openBlock(event: BlockEvent, context: BlockContext): OpenBlock {
  switch (event.type) {
    case 'text-start':
      return new TextBlock(event, context)
    case 'reasoning-start':
      return new ThinkingBlock(event, context)
    case 'tool-call-start':
      return new ToolUseBlock(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context) ?? hiddenBlock
    default:
      throw new Error(`${event.type} opens no block`)
  }
}

/** Text or a refusal. Without text there is no block, since clients reject empty blocks. */
class TextBlock implements OpenBlock {
  #hasText = false
  #isCited = false

  constructor(start: EventOf<'text-start'>, { tally }: BlockContext) {
    if (start.form === 'refusal') tally.hasRefusal = true
  }

  push(sink: BlockSink, event: BlockEvent): string {
    if (event.type === 'text-delta') return this.#addText(sink, event.text)
    assert(event.type === 'citation', `${event.type} in a text`)
    return this.#cite(sink, event.citation)
  }

  end(sink: BlockSink): string {
    return sink.stop()
  }

  #addText(sink: BlockSink, text: string): string {
    if (text === '') return ''
    const head = this.#endCitedBlock(sink) + openOnce(sink, emptyText)
    this.#hasText = true
    return head + sink.delta('text_delta', text)
  }

  #cite(sink: BlockSink, cited: Citation): string {
    const citation = renderCitation(cited)
    if (citation === null) return ''
    this.#isCited ||= cited.kind === 'file' && this.#hasText
    return openOnce(sink, emptyText) + sink.cite(citation)
  }

  /** A citation applies to a whole block, so the text after it needs a new one. */
  #endCitedBlock(sink: BlockSink): string {
    if (!this.#hasText || !this.#isCited) return ''
    this.#isCited = false
    return sink.stop()
  }
}

/**
 * Null if the format cannot represent the citation. Files can only be cited as search results. The
 * text of a web page is unknown, so it is not quoted.
 */
function renderCitation(citation: Citation): object | null {
  if (citation.kind === 'file') return renderPassage(citation)
  const { url, title } = citation
  return { type: 'web_search_result_location', url, title, cited_text: '', encrypted_index: '' }
}

/** A passage is a search result with one block. Clients show its source as a link. */
function renderPassage({
  fileId,
  filename,
  quoted,
}: Extract<Citation, { kind: 'file' }>): object | null {
  if (quoted === undefined) return null
  return {
    type: 'search_result_location',
    cited_text: quoted.text,
    search_result_index: quoted.number - 1,
    source: `/v1/files/${fileId}`,
    title: filename,
    start_block_index: 0,
    end_block_index: 1,
  }
}

const betweenParts = '\n\n'

/**
 * Reasoning as a thinking block. Clients only keep its text and signature, so the signature seals the
 * reasoning together with the encrypted payload of the upstream. The block has no text if the upstream
 * sends only the payload, or the client omits it.
 */
class ThinkingBlock implements OpenBlock {
  readonly #isShown: boolean
  #text = ''
  #part: number | null = null
  readonly #isSummary: boolean
  readonly #seal: ReasoningSeal

  constructor(start: EventOf<'reasoning-start'>, context: BlockContext) {
    this.#isShown = context.thinkingDisplay === 'summarized'
    this.#isSummary = start.form === 'summary'
    this.#seal = context.reasoningSeal
  }

  push(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
    if (event.text === '') return ''
    const isNewPart = this.#text !== '' && event.part !== this.#part
    const added = isNewPart ? betweenParts + event.text : event.text
    this.#part = event.part
    this.#text += added
    return this.#isShown
      ? openOnce(sink, emptyThinking) + sink.delta('thinking_delta', added)
      : openOnce(sink, emptyThinking)
  }

  end(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
    const { sealed: payload = null, sealedBy: maker = null } = event
    if (this.#text === '' && payload === null) return sink.stop()
    // A summary is not the reasoning itself, so it is not returned to the model.
    const reasoning = this.#isSummary ? '' : this.#text
    const signature = this.#seal.seal({ text: reasoning, payload, maker })
    return openOnce(sink, emptyThinking) + sink.delta('signature_delta', signature) + sink.stop()
  }
}

/** `citations` is absent without any, as at the vendor: clients refuse null. */
const emptyText = { type: 'text', text: '' }
const emptyThinking = { type: 'thinking', thinking: '', signature: '' }

function openOnce(sink: BlockSink, block: ContentBlock): string {
  return sink.isOpen() ? '' : sink.start(block)
}

/**
 * A call as a tool_use block. Arguments are sent as the model wrote them, even if incomplete: repairing
 * them could make a call that looks complete but does something else.
 */
class ToolUseBlock implements OpenBlock {
  readonly #isCustom: boolean
  readonly #call: ToolCallHead
  readonly #tally: BlockTally

  constructor({ call }: EventOf<'tool-call-start'>, { tally }: BlockContext) {
    this.#isCustom = call.form === 'custom'
    this.#call = call
    this.#tally = tally
  }

  start(sink: BlockSink): string {
    this.#tally.toolUses++
    const { callId, name } = this.#call
    const shell = {
      type: 'tool_use',
      id: toToolUseId(callId),
      name,
      input: {},
      caller: { type: 'direct' },
    }
    return sink.start(shell) + (this.#isCustom ? inputDelta(sink, customHead) : '')
  }

  push(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'tool-call-delta', `${event.type} in a tool call`)
    const { text } = event
    return inputDelta(sink, this.#isCustom ? JSON.stringify(text).slice(1, -1) : text)
  }

  end(sink: BlockSink, event: BlockEvent): string {
    assert(event.type === 'tool-call-end', `${event.type} ends a tool call`)
    return (this.#isCustom && event.complete ? inputDelta(sink, customTail) : '') + sink.stop()
  }
}

function inputDelta(sink: BlockSink, json: string): string {
  return json === '' ? '' : sink.delta('input_json_delta', json)
}

/** The format only has object inputs, so free text becomes the field `input`. */
const customHead = '{"input":"'
const customTail = '"}'
