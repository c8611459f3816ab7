import { eventFrame, toLine } from '#http/frame-text.ts'
import { asRecord, type JsonObject } from '#lib/json.ts'
import { type DeltaType, deltaFields, type MessageSink } from './message.ts'

export const pingFrame = eventFrame('ping', { type: 'ping' })

export type FrameSink = MessageSink & {
  /** A delta that adds nothing to the block that is open; nothing where none takes deltas. */
  touch(): string
}

type OpenBlock = {
  readonly type: string
  readonly index: number
  /** The parts of delta frames before their texts, made once a block: the hot path. */
  readonly heads: { [Type in DeltaType]?: string }
}

const afterDeltaText = '}}\n\n'

/** The delta by which each kind of block grows. */
const growth: Readonly<Record<string, DeltaType>> = {
  text: 'text_delta',
  thinking: 'thinking_delta',
  tool_use: 'input_json_delta',
}

/** Writes one message as server-sent events. */
export function createFrameSink(): FrameSink {
  let open: OpenBlock | null = null
  let nextIndex = 0

  const frame = (type: string, fields: object) => eventFrame(type, { type, ...fields })
  const delta = (type: DeltaType, text: string) => {
    if (open === null) return ''
    open.heads[type] ??= deltaHead(open.index, type)
    return open.heads[type] + toLine(text) + afterDeltaText
  }
  const follow = ({ type, index, content_block: block, message }: JsonObject) => {
    if (type === 'message_start') nextIndex = lengthOf(asRecord(message)['content'])
    if (type === 'content_block_stop') open = null
    if (type !== 'content_block_start' || typeof index !== 'number') return
    open = { type: String(asRecord(block)['type']), index, heads: {} }
    nextIndex = index + 1
  }
  return {
    begin: (message) => frame('message_start', { message }),
    start(block) {
      open = { type: block.type, index: nextIndex++, heads: {} }
      return frame('content_block_start', { index: open.index, content_block: block })
    },
    delta,
    cite(citation) {
      if (open === null) return ''
      const { index } = open
      return frame('content_block_delta', { index, delta: { type: 'citations_delta', citation } })
    },
    stop() {
      if (open === null) return ''
      const { index } = open
      open = null
      return frame('content_block_stop', { index })
    },
    isOpen: () => open !== null,
    end: (end, usage) => frame('message_delta', { delta: end, usage }) + frame('message_stop', {}),
    relay(frames) {
      let written = ''
      for (const { payload, data } of frames) {
        follow(payload)
        written += `event: ${payload['type']}\ndata: ${data}\n\n`
      }
      return written
    },
    fail: (body) => eventFrame('error', body),
    touch: () => {
      const type = growth[open?.type ?? '']
      return type === undefined ? '' : delta(type, '')
    },
  }
}

/** A message may begin with calls that come whole. */
function lengthOf(content: unknown): number {
  return Array.isArray(content) ? content.length : 0
}

function deltaHead(index: number, type: DeltaType): string {
  const json = toLine({ type: 'content_block_delta', index, delta: { type } })
  return `event: content_block_delta\ndata: ${json.slice(0, -2)},"${deltaFields[type]}":`
}
