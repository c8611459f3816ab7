import { AppError } from '#lib/errors.ts'

/** One server-sent event; `event` is empty where the stream names none. */
export type ServerSentEvent = { readonly event: string; readonly data: string }

export type EventStreamParser = {
  /** The events that these bytes complete, in order. */
  push(bytes: Uint8Array): ServerSentEvent[]
  /**
   * What is left when the body has ended. A stream may lack its last blank line, so the event that
   * was still open is given out; it may be cut in the middle.
   */
  end(): ServerSentEvent | null
}

/**
 * Parses text/event-stream (WHATWG HTML, 9.2.6) from bytes that may be cut anywhere, also inside a
 * character or between CR and LF. Only what is new is searched, so an event that arrives in many
 * pieces costs no more than its length. Throws when one event exceeds `eventBytesMax`.
 */
export function createEventStreamParser(limits: { eventBytesMax: number }): EventStreamParser {
  const decoder = new TextDecoder()
  let line = ''
  let event = ''
  let data: string | null = null
  let skipLineFeed = false

  const takeLine = (text: string, out: ServerSentEvent[]) => {
    if (text === '') {
      if (data !== null) out.push({ event, data })
      data = null
      event = ''
    } else if (text.startsWith('data:')) {
      const value = text.slice(text.charCodeAt(5) === space ? 6 : 5)
      data = data === null ? value : `${data}\n${value}`
    } else if (text.startsWith('event:')) {
      event = text.slice(text.charCodeAt(6) === space ? 7 : 6)
    } else if (text === 'data') {
      data = data === null ? '' : `${data}\n`
    }
    // Comments, ids, retry hints and unknown fields carry nothing for us.
  }

  const refuseLong = (text: string) => {
    if (text.length + (data?.length ?? 0) <= limits.eventBytesMax) return
    throw new AppError('upstream_invalid_answer', 'The upstream sent an event that is too long.')
  }

  const takeText = (added: string, out: ServerSentEvent[]) => {
    let from = 0
    for (let to = added.indexOf('\n'); to !== -1; to = added.indexOf('\n', from)) {
      line += added.slice(from, to)
      refuseLong(line)
      takeLine(line, out)
      line = ''
      from = to + 1
    }
    line += from === 0 ? added : added.slice(from)
    refuseLong(line)
  }

  const unifyLineEnds = (text: string): string => {
    const rest = skipLineFeed && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') skipLineFeed = rest.endsWith('\r')
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest
  }

  return {
    push(bytes) {
      const out: ServerSentEvent[] = []
      takeText(unifyLineEnds(decoder.decode(bytes, { stream: true })), out)
      return out
    },
    end() {
      const out: ServerSentEvent[] = []
      takeText(unifyLineEnds(decoder.decode()), out)
      takeLine(line, out)
      line = ''
      takeLine('', out)
      return out[0] ?? null
    },
  }
}

const space = 0x20
