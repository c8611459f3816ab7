import { computed, signal } from '@preact/signals'
import { isAborted, messageOf, send } from '../../api/call.ts'
import { ApiError } from '../../api/errors.ts'
import { readFrames } from '../../api/event-stream.ts'
import type { MessageStreamEvent, ResponseStreamEvent } from '../../api/generated/types.ts'
import {
  type Answer,
  createRefresh,
  end,
  type Failure,
  isRunning,
  newAnswer,
  record,
} from './answer.ts'
import { applyMessageEvent } from './messages-events.ts'
import { buildRequest, type Question, type Turn } from './request.ts'
import { applyResponseEvent } from './responses-events.ts'
import type { Settings } from './settings.ts'
import { loadConversation, saveConversation } from './stored-conversation.ts'

const loaded = loadConversation()

export const settings = signal<Settings>(loaded.settings)
export const turns = signal<readonly Turn[]>(loaded.turns)

/** Ends the stream of the running answer. */
let controller: AbortController | null = null
let turnCount = 0

const save = () => saveConversation(settings.value, turns.value)

export function changeSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change }
  save()
}

export function clearConversation(): void {
  controller?.abort()
  turns.value = []
  save()
}

/** Whether an answer is being streamed. */
export const isBusy = computed(() => {
  const last = turns.value.at(-1)?.answer
  return last !== undefined && last.version.value >= 0 && isRunning(last)
})

/** Sends a question, and streams its answer into a new turn. Throws for settings that do not parse. */
export async function ask(question: Question): Promise<void> {
  const { model, surface } = settings.value
  const request = buildRequest(settings.value, turns.value, question)
  const answer = newAnswer({ surface, model, request })
  turnCount += 1
  turns.value = [...turns.value, { id: `${Date.now()}-${turnCount}`, question, answer }]
  save()
  const operation = surface === 'responses' ? 'POST /v1/responses' : 'POST /compat/v1/messages'
  await follow(answer, (given) => send(operation, { body: request }, { signal: given }))
}

/** Asks the last question again, in place of its answer. */
export async function askAgain(): Promise<void> {
  const last = turns.value.at(-1)
  if (last === undefined || isBusy.value) return
  turns.value = turns.value.slice(0, -1)
  await ask(last.question)
}

/** Continues after a reload of the page: a stored stream is read again, the answer is complete. */
export async function resume(): Promise<void> {
  const last = turns.value.at(-1)?.answer
  if (controller !== null || last === undefined || !isRunning(last)) return
  const { responseId, surface } = last
  if (surface !== 'responses' || responseId === null || last.request['store'] === false) {
    last.status = 'interrupted'
    last.version.value += 1
    save()
    return
  }
  last.parts.length = 0
  last.isResumed = true
  last.sentAt = performance.now()
  last.firstAt = null
  const path = { response_id: responseId }
  await follow(last, (given) =>
    send('GET /v1/responses/{response_id}', { path, query: { stream: true } }, { signal: given }),
  )
}

/** Stops the answer: the gateway stops the model, and what has arrived stays. */
export function stop(): void {
  const last = turns.value.at(-1)?.answer
  if (last?.surface === 'responses' && last.responseId !== null && isRunning(last)) {
    const path = { response_id: last.responseId }
    // Without its row (store: false) there is nothing to cancel but the connection.
    send('POST /v1/responses/{response_id}/cancel', { path }).catch(() => {})
  }
  controller?.abort()
}

async function follow(
  answer: Answer,
  open: (given: AbortSignal) => Promise<Response>,
): Promise<void> {
  const own = new AbortController()
  controller = own
  const refresh = createRefresh(answer)
  try {
    for await (const { event, data } of readFrames(await open(own.signal))) {
      record(answer, event, data)
      if (data === '[DONE]') break
      const isNew = answer.responseId === null
      apply(answer, data)
      // From here on a reload can find the stream again.
      if (isNew && answer.responseId !== null) save()
      refresh()
    }
    if (isRunning(answer)) {
      answer.error = { message: 'The stream ended early.', code: 'stream_cut' }
      end(answer, 'failed')
    }
  } catch (error) {
    if (isAborted(error) || own.signal.aborted) {
      end(answer, 'stopped')
    } else {
      answer.error =
        error instanceof ApiError
          ? failureOf(error)
          : { message: messageOf(error), code: 'stream_cut' }
      if (answer.error.code === 'previous_response_not_found') forgetStored()
      end(answer, 'failed')
    }
  } finally {
    if (controller === own) controller = null
    refresh()
    save()
  }
}

/** The gateway has deleted what the answer should continue: the next request has all of it. */
function forgetStored(): void {
  for (const { answer } of turns.value) answer.responseId = null
}

function failureOf({ message, code, status, requestId }: ApiError): Failure {
  return { message, code, status, requestId }
}

function apply(answer: Answer, data: string): void {
  const event: unknown = JSON.parse(data)
  if (answer.surface === 'responses') applyResponseEvent(answer, event as ResponseStreamEvent)
  else applyMessageEvent(answer, event as MessageStreamEvent)
}
