import { messagesFrames } from './messages-frames.ts'
import { chatFrames, type MockFrames, type Protocol, responsesFrames } from './mock-frames.ts'
import { type Plan, tokenText } from './plan.ts'

export const framesOf: Readonly<Record<Protocol, MockFrames>> = {
  chat: chatFrames,
  responses: responsesFrames,
  messages: messagesFrames,
}

/** The final chunk of a body. */
export const lastChunk = Buffer.from('0\r\n\r\n')

/** A chunk of `Transfer-Encoding: chunked`. */
export function chunk(text: string): Buffer {
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`)
}

/** Encoded chunks of all tokens after the first, shared by all streams. */
const tokenChunks = new Map<string, Buffer[]>()

export function tokenChunksOf(protocol: Protocol, plan: Plan): (index: number) => Buffer {
  const key = `${protocol} ${plan.tokenBytes}`
  const known = tokenChunks.get(key) ?? []
  tokenChunks.set(key, known)
  return (index) => {
    const found = known[index]
    if (found !== undefined) return found
    const made = chunk(framesOf[protocol].token(tokenText(plan, index, 0), index))
    known[index] = made
    return made
  }
}
