import {
  appendEvents,
  type EventBatch,
  endOfBlock,
  type GenerationEvent,
} from '#inference/events.ts'
import type { Generate, GenerationJob } from '#inference/inference.ts'
import type { GenerationRequest } from '#inference/request.ts'
import { AppError, toAppError } from '#lib/errors.ts'
import { type ChecksRun, createChecks, type LoadedHook, type RunChecksDeps } from './checks.ts'
import { OutputTexts } from './output-texts.ts'
import { readRequest, replaceRequest } from './request-texts.ts'

/** What an event without text counts, in characters. */
const eventChars = 64

/**
 * Passes requests and outputs through the hooks that apply to them, in their order. What a hook refuses
 * or cannot check is neither sent nor stored. Other generations do not pass through here.
 */
export function withHooks(
  generate: Generate,
  hooks: readonly LoadedHook[],
  deps: RunChecksDeps,
): Generate {
  return (job) => {
    const applying = hooks.filter((hook) => hook.applies(job))
    return applying.length === 0
      ? generate(job)
      : guard(generate, job, createChecks(applying, job, deps))
  }
}

async function* guard(
  generate: Generate,
  job: GenerationJob,
  begin: () => ChecksRun,
): AsyncGenerator<EventBatch, void, void> {
  const checks = begin()
  const checked = { ...job, request: await checkRequest(job.request, checks) }
  if (!checks.has('output') && !checks.has('after')) {
    yield* generate(checked)
    return
  }
  const output = new GuardedOutput(checks)
  let last: GenerationEvent | undefined
  try {
    for await (const batch of generate(checked)) {
      const events = await output.pass(batch)
      if (events.length === 0) continue
      last = events.at(-1)
      yield events
    }
  } catch (error) {
    if (last === undefined) throw error
    yield [...endOfBlock(last), { type: 'error', error: toAppError(error) }]
  }
}

async function checkRequest(
  request: GenerationRequest,
  checks: ChecksRun,
): Promise<GenerationRequest> {
  if (!checks.has('before')) return request
  const given = readRequest(request)
  const texts = await checks.run('before', given)
  return texts === null ? request : replaceRequest(request, texts)
}

/** The output of one generation. Relayed frames are dropped: they hold what hooks have not seen. */
class GuardedOutput {
  readonly #checks: ChecksRun
  readonly #texts = new OutputTexts()
  /** Everything where the whole output is checked; otherwise a start without output. */
  #held: GenerationEvent[] = []
  #heldChars = 0

  constructor(checks: ChecksRun) {
    this.#checks = checks
  }

  /** The events that may be sent now. */
  async pass(batch: EventBatch): Promise<EventBatch> {
    const end = batch.at(-1)
    const holds = this.#checks.has('after')
    // Nothing was sent, so that the failure can still be an HTTP status.
    if (holds && end?.type === 'error') throw end.error
    const joined: GenerationEvent[] = []
    appendEvents(joined, batch)
    const events = await this.#check('output', joined)
    if (holds) this.#count(events)
    appendEvents(this.#held, events)
    if (holds && end?.type !== 'finish') return []
    if (!holds && this.#held.every(({ type }) => type === 'generation-start')) return []
    const held = this.#held
    this.#held = []
    return holds ? this.#check('after', held) : held
  }

  async #check(stage: 'output' | 'after', events: EventBatch): Promise<EventBatch> {
    if (!this.#checks.has(stage)) return events
    const { texts, replace } = this.#texts.read(events)
    const given = texts.length === 0 ? null : await this.#checks.run(stage, texts)
    return this.#texts.clean(
      given === null ? events : this.#checks.replacing(stage, () => replace(given)),
    )
  }

  #count(events: EventBatch) {
    for (const event of events) this.#heldChars += charsOf(event)
    const { heldCharsMax } = this.#checks
    if (this.#heldChars <= heldCharsMax) return
    throw new AppError(
      'content_refused',
      `The output is longer than can be checked (${heldCharsMax} characters).`,
    )
  }
}

function charsOf(event: GenerationEvent): number {
  if ('text' in event) return event.text.length + ('logprobs' in event ? eventChars : 0)
  if ('item' in event) return JSON.stringify(event.item).length
  if ('fields' in event) return JSON.stringify(event.fields).length
  if ('citation' in event) return JSON.stringify(event.citation).length
  return eventChars
}
