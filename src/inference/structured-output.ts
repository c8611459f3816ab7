import { createFormCheck, type DemandedForm } from './answer-form.ts'
import type { EventBatch, GenerationEvent, Usage } from './events.ts'
import { addUsage } from './events.ts'
import type { Generate, GenerationJob } from './inference.ts'

/** A generation whose answer has not the demanded form is run so often, where nobody saw it. */
const triesMax = 2

/**
 * Holds answers to the form that their request demands. One that has another form never finishes as
 * if it were complete: it is made once more where nothing went to the caller, and otherwise its text
 * ends incomplete and the generation finishes with `invalid-output`. Usage is that of both tries.
 *
 * Refusals, turns that end in tool calls, and answers that were cut off are left as they are. Text
 * is streamed as it comes, only its end waits for the check; where the caller reads the answer only
 * when it is whole (`buffered`), everything waits, so that another try can take its place.
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
  form: DemandedForm,
): AsyncGenerator<EventBatch, void, void> {
  const hasForm = createFormCheck(form)
  let spent: Usage | null = null
  for (let tries = 1; ; tries++) {
    const judge = createJudge(hasForm)
    let held: GenerationEvent[] = []
    let isSeen = false
    let isAgain = false
    const isUnseen = () => !isSeen && !job.committed()
    for await (const batch of generate(job)) {
      const events = judge.push(batch).map((event) => countIn(spent, event))
      const last = events.at(-1)
      if (last?.type === 'finish' && judge.isWrong() && tries < triesMax && isUnseen()) {
        spent = last.usage
        isAgain = true
        break
      }
      const isOver = last?.type === 'finish' || last?.type === 'error'
      if (job.buffered === true && !isOver && isUnseen()) {
        hold(held, events)
      } else if (events.length > 0) {
        isSeen = true
        yield [...held, ...events]
        held = []
      }
    }
    if (!isAgain) return
  }
}

function countIn(spent: Usage | null, event: GenerationEvent): GenerationEvent {
  if (spent === null || event.type !== 'finish') return event
  return { ...event, usage: addUsage(spent, event.usage) }
}

/** Adds events to what is held; pieces of one text become one, so that many cost no more than few. */
function hold(held: GenerationEvent[], events: EventBatch): void {
  for (const event of events) {
    const last = held.at(-1)
    const joined = last === undefined ? null : join(last, event)
    if (joined === null) held.push(event)
    else held[held.length - 1] = joined
  }
}

/** Two pieces of one text as one; blocks do not overlap, so that neighbours are of the same block. */
function join(last: GenerationEvent, event: GenerationEvent): GenerationEvent | null {
  if (!('text' in last && 'text' in event) || last.type !== event.type) return null
  if ('logprobs' in last || 'logprobs' in event) return null
  if ('part' in last && 'part' in event && last.part !== event.part) return null
  return { ...last, text: last.text + event.text }
}

type Judge = {
  /** The events that may go out now; a finish with a wrong answer says that it is one. */
  push(batch: EventBatch): EventBatch
  /** Whether the generation has finished, as if it were complete, with a wrong answer. */
  isWrong(): boolean
}

/** `excused`: no answer is due, because of a refusal, or of a tool that is called. */
type Verdict = 'none' | 'right' | 'wrong' | 'excused'

/** Reads one generation. Every text of its answer must have the form on its own. */
function createJudge(hasForm: (answer: string) => boolean): Judge {
  let verdict: Verdict = 'none'
  /** The open text, where it is one of the answer. */
  let text: string | null = null
  /** The end of a wrong text; how it ends depends on what follows. */
  let wrongEnd: TextEnd | null = null
  let isWrong = false

  /** Whether the event goes out as it is. */
  const read = (event: GenerationEvent): boolean => {
    switch (event.type) {
      case 'text-start':
        text = event.form === 'answer' && event.phase !== 'commentary' ? '' : null
        if (event.form === 'refusal') verdict = 'excused'
        return true
      case 'text-delta':
        if (text !== null) text += event.text
        return true
      case 'text-end':
        if (text === null || !event.complete) return true
        if (hasForm(text)) {
          if (verdict !== 'wrong') verdict = 'right'
          return true
        }
        verdict = 'wrong'
        wrongEnd = event
        return false
      case 'tool-call-start':
      case 'hosted-tool-start':
        verdict = 'excused'
        return true
      default:
        return true
    }
  }

  const finish = (event: Finish, out: GenerationEvent[]) => {
    isWrong = event.reason === 'stop' && (verdict === 'wrong' || verdict === 'none')
    if (wrongEnd !== null) out.push({ ...wrongEnd, complete: !isWrong })
    out.push(isWrong ? { ...event, reason: 'invalid-output' } : event)
  }

  return {
    push(batch) {
      const out: GenerationEvent[] = []
      for (const event of batch) {
        if (event.type === 'finish') {
          finish(event, out)
          continue
        }
        if (wrongEnd !== null) out.push(wrongEnd)
        wrongEnd = null
        if (read(event)) out.push(event)
      }
      return out
    },
    isWrong: () => isWrong,
  }
}

type TextEnd = Extract<GenerationEvent, { type: 'text-end' }>
type Finish = Extract<GenerationEvent, { type: 'finish' }>
