import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Protocol } from './mock-frames.ts'

/** Protocol-independent content of stream events. */
export type StreamFacts = {
  text(text: string): void
  /** The complete text, repeated by a closing event. */
  wholeText(text: unknown, type: string): void
  heartbeat(): void
  /** `stop`: a regular end; anything else is the reason. */
  terminal(reason: string): void
  outOfSequence(sentence: string): void
  broken(sentence: string): void
}

/** `type`: event name of the frame; empty if the protocol has none. */
export type EventReader = (type: string, event: JsonObject) => void

/** One reader per stream. */
export const eventReaders: Readonly<Record<Protocol, (facts: StreamFacts) => EventReader>> = {
  chat: readChat,
  responses: readResponses,
  messages: readMessages,
}

function readChat(facts: StreamFacts): EventReader {
  return (_type, chunk) => {
    const choices = chunk['choices']
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined
    if (!isRecord(choice)) return
    const delta = choice['delta']
    const content = isRecord(delta) ? delta['content'] : undefined
    if (typeof content === 'string' && content !== '') facts.text(content)
    if (typeof choice['finish_reason'] === 'string') facts.terminal(choice['finish_reason'])
  }
}

function readResponses(facts: StreamFacts): EventReader {
  let nextSequence = 0
  return (type, event) => {
    if (event['sequence_number'] !== nextSequence) {
      facts.outOfSequence(
        `sequence number ${String(event['sequence_number'])} in place of ${nextSequence}`,
      )
    }
    const isFirst = nextSequence++ === 0
    if (event['type'] !== type) facts.broken(`event ${type} has type ${String(event['type'])}`)
    if (isFirst !== (type === 'response.created')) facts.broken(`${type} at the wrong place`)
    switch (type) {
      case 'response.output_text.delta':
        facts.text(String(event['delta']))
        break
      case 'response.in_progress':
        if (nextSequence > 2) facts.heartbeat()
        break
      case 'response.output_text.done':
        facts.wholeText(event['text'], type)
        break
      case 'response.completed':
        facts.wholeText(outputTextOf(event['response']), type)
        facts.terminal('stop')
        break
      case 'error':
      case 'response.failed':
      case 'response.incomplete':
        facts.terminal(JSON.stringify(event))
        break
    }
  }
}

/** Event order of a message with one text block. */
const messageOrder: Readonly<Record<string, readonly string[]>> = {
  message_start: [''],
  content_block_start: ['message_start'],
  content_block_delta: ['content_block_start', 'content_block_delta'],
  content_block_stop: ['content_block_delta'],
  message_delta: ['content_block_stop'],
  message_stop: ['message_delta'],
}

function readMessages(facts: StreamFacts): EventReader {
  let last = ''
  let stopReason: unknown = null
  return (type, event) => {
    if (event['type'] !== type) facts.broken(`event ${type} has type ${String(event['type'])}`)
    if (type === 'ping') {
      facts.heartbeat()
      return
    }
    if (type === 'error') {
      facts.terminal(JSON.stringify(event))
      return
    }
    if (messageOrder[type]?.includes(last) !== true) {
      facts.outOfSequence(`${type} after ${last || 'nothing'}`)
    }
    last = type
    const delta = isRecord(event['delta']) ? event['delta'] : {}
    if (type === 'content_block_delta') {
      // A delta without text is a heartbeat.
      if (delta['text'] === '') facts.heartbeat()
      else facts.text(String(delta['text']))
    }
    if (type === 'message_delta') stopReason = delta['stop_reason']
    if (type === 'message_stop') {
      facts.terminal(stopReason === 'end_turn' ? 'stop' : String(stopReason))
    }
  }
}

/** First text of a Response object; undefined if it has none. */
export function outputTextOf(response: unknown): unknown {
  const output = isRecord(response) ? response['output'] : undefined
  const item: unknown = Array.isArray(output) ? output[0] : undefined
  const content = isRecord(item) ? item['content'] : undefined
  const part: unknown = Array.isArray(content) ? content[0] : undefined
  return isRecord(part) ? part['text'] : undefined
}
