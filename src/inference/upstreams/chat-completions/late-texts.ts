import { type ChatMessage, type ChatPart, joinContent } from './message-form.ts'

/** System texts behind the first message, for templates that take them nowhere else. */
export type LateTexts = {
  /** Puts a text where it stands: at the end of what was said before by anyone but the assistant. */
  add(text: string): void
  /** The texts that wait for the next user message, to go in front of it. */
  take(): ChatPart[]
  /** No user message comes for those that wait: they become one. */
  end(): void
}

/** Tells the model, and whoever reads the prompt, that not the user or the tool says it. */
const marker = '[System instruction]'

/**
 * They are folded into their neighbours and never into the head of the prompt, which stays what it
 * was, so that an upstream need not read it again. After the results of tools there is no new user
 * message either: many templates drop the reasoning that stands before the last of them.
 */
export function createLateTexts(messages: ChatMessage[]): LateTexts {
  let waiting: ChatPart[] = []

  const take = () => {
    const taken = waiting
    waiting = []
    return taken
  }
  return {
    add(text) {
      const part: ChatPart = { type: 'text', text: `${marker}\n${text}` }
      const last = messages.at(-1)
      if (last?.role === 'user') {
        const before = typeof last.content === 'string' ? textPart(last.content) : last.content
        messages.splice(-1, 1, { ...last, content: joinContent([...before, part]) })
      } else if (last?.role === 'tool') {
        const content = last.content === '' ? part.text : `${last.content}\n\n${part.text}`
        messages.splice(-1, 1, { ...last, content })
      } else {
        waiting.push(part)
      }
    },
    take,
    end() {
      const parts = take()
      if (parts.length > 0) messages.push({ role: 'user', content: joinContent(parts) })
    },
  }
}

function textPart(text: string): ChatPart[] {
  return text === '' ? [] : [{ type: 'text', text }]
}
