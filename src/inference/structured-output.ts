import { createFormatCheck, type RequiredFormat } from './answer-form.ts'
import {
  appendEvents,
  type EventBatch,
  type GenerationEvent,
  type Usage,
  withSpentUsage,
} from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'

/** A response in the wrong format is generated again, if nothing was sent yet. */
const attemptsMax = 2

/**
 * Enforces the output format of requests. A response in another format is generated again if nothing
 * was sent yet; otherwise its text ends incomplete and the generation finishes with `invalid-output`.
 * The usage covers both attempts.
 *
 * Refusals, turns that end in tool calls, and truncated responses pass unchanged. Text is streamed, only
 * its end waits for the check. Buffered responses (`buffered`) wait completely, so that a second attempt
 * can replace them.
 */
export function withCheckedOutput(generate: Generate): Generate {
  return (job) => {
    const { format } = job.request
    return format.type === 'text' ? generate(job) : generateChecked(generate, job, format)
  }
}

async function* generateChecked(
  generate: Generate,
  job: GenerationJob,
  format: RequiredFormat,
): AsyncGenerator<EventBatch, void, void> {
  const hasFormat = createFormatCheck(format)
  let spent: Usage | null = null
  for (let attempts = 1; ; attempts++) {
    const checker = new OutputChecker(hasFormat)
    let held: GenerationEvent[] = []
    let isSent = false
    let isRetried = false
    const attempt = attempts === 1 ? job : { ...job, continues: true }
    for await (const batch of generate(attempt)) {
      const events = withSpentUsage(checker.push(batch), spent)
      const last = events.at(-1)
      if (last?.type === 'finish' && checker.isWrong && attempts < attemptsMax && !isSent) {
        spent = last.usage
        isRetried = true
        break
      }
      const isOver = last?.type === 'finish' || last?.type === 'error'
      if (job.buffered === true && !isOver && !isSent) {
        appendEvents(held, events)
      } else if (events.length > 0) {
        isSent = true
        yield [...held, ...events]
        held = []
      }
    }
    if (!isRetried) return
  }
}

/** `exempt`: a refusal or a tool call, which need no format. */
type Verdict = 'none' | 'right' | 'wrong' | 'exempt'

/** Checks one generation. Every text of the response must have the format. */
class OutputChecker {
  /** Whether the generation finished normally with a wrong format. */
  isWrong = false
  readonly #hasFormat: (answer: string) => boolean
  #verdict: Verdict = 'none'
  /** The open text, if it is part of the response. */
  #text: string | null = null
  /** The held end of a text in the wrong format; its `complete` depends on later events. */
  #wrongEnd: TextEnd | null = null

  constructor(hasFormat: (answer: string) => boolean) {
    this.#hasFormat = hasFormat
  }

  /** The events that may be emitted; `finish` becomes `invalid-output` for a wrong format. */
  push(batch: EventBatch): EventBatch {
    const out: GenerationEvent[] = []
    for (const event of batch) {
      if (event.type === 'finish') {
        this.isWrong =
          event.reason === 'stop' && (this.#verdict === 'wrong' || this.#verdict === 'none')
        if (this.#wrongEnd !== null) out.push({ ...this.#wrongEnd, complete: !this.isWrong })
        out.push(this.isWrong ? { ...event, reason: 'invalid-output' } : event)
        continue
      }
      if (this.#wrongEnd !== null) out.push(this.#wrongEnd)
      this.#wrongEnd = null
      if (this.#read(event)) out.push(event)
    }
    return out
  }

  /** Returns whether the event may be emitted now. */
  #read(event: GenerationEvent): boolean {
    switch (event.type) {
      case 'text-start':
        this.#text = event.form === 'answer' && event.phase !== 'commentary' ? '' : null
        if (event.form === 'refusal') this.#verdict = 'exempt'
        return true
      case 'text-delta':
        if (this.#text !== null) this.#text += event.text
        return true
      case 'text-end':
        if (this.#text === null || !event.complete) return true
        if (this.#hasFormat(this.#text)) {
          if (this.#verdict !== 'wrong') this.#verdict = 'right'
          return true
        }
        this.#verdict = 'wrong'
        this.#wrongEnd = event
        return false
      case 'tool-call-start':
      case 'hosted-tool-start':
        this.#verdict = 'exempt'
        return true
      default:
        return true
    }
  }
}

type TextEnd = Extract<GenerationEvent, { type: 'text-end' }>
