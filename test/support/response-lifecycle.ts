import { expect } from 'bun:test'
import { isRecord, type JsonObject } from '#lib/json.ts'
import type { Frame } from './response-frames.ts'

/** Validates the frames with the whole response, and their order. */

/** The frames that may follow each lifecycle frame; items are sent while it is in progress. */
const lifecycle: Readonly<Record<string, readonly string[]>> = {
  start: ['response.created'],
  'response.created': ['response.queued', 'response.in_progress', 'response.completed'],
  'response.queued': ['response.in_progress', 'response.incomplete', 'error'],
  'response.in_progress': [
    'response.in_progress',
    'response.completed',
    'response.incomplete',
    'error',
  ],
  error: ['response.failed'],
  'response.completed': [],
  'response.incomplete': [],
  'response.failed': [],
}

/** The states of the response in order; the last one may be final. */
export function checkLifecycle(
  frames: readonly Frame[],
  expected: { from: 'start' | 'anywhere'; isOver: boolean },
): JsonObject[] {
  const seenFrames: Frame[] = []
  let before = expected.from === 'start' ? 'start' : null
  for (const frame of frames) {
    if (!isOfLifecycle(frame.type)) {
      expect(before ?? 'response.in_progress', `${frame.type} is where it belongs`).toBe(
        'response.in_progress',
      )
      continue
    }
    if (before !== null) expect(lifecycle[before], `after ${before}`).toContain(frame.type)
    before = frame.type
    seenFrames.push(frame)
  }
  if (expected.isOver) expect(lifecycle[before ?? ''], 'the stream has an end').toEqual([])
  const states = seenFrames.filter(({ type }) => type !== 'error')
  for (const [at, frame] of states.entries()) checkState(frame, states[at + 1]?.type)
  checkSameResponse(states.map((frame) => object(frame, 'response')))
  const end = frames.at(-1)
  if (end?.type === 'response.failed') checkError(frames.at(-2), object(end, 'response'))
  return states.map((frame) => object(frame, 'response'))
}

function checkState(frame: Frame, next: string | undefined): void {
  const response = object(frame, 'response')
  const { status, output, completed_at: completedAt } = response
  const isQueued = frame.type === 'response.queued' || next === 'response.queued'
  const name = frame.type.replace('response.', '')
  const isOpen = name === 'created' || name === 'queued' || name === 'in_progress'
  if (name === 'created' && next === undefined) expect(status).toBeOneOf(['queued', 'in_progress'])
  else if (isOpen) expect(status).toBe(isQueued ? 'queued' : 'in_progress')
  // The format has no event for cancelled responses.
  else if (name === 'incomplete') expect(status).toBeOneOf(['incomplete', 'cancelled'])
  else expect(status).toBe(name)
  if (name === 'created' || name === 'queued') expect(output).toEqual([])
  expect(typeof completedAt, 'when it was completed').toBe(
    status === 'completed' ? 'number' : 'object',
  )
  expect(response['incomplete_details'] !== null).toBe(status === 'incomplete')
  expect(response['error'] !== null).toBe(status === 'failed')
  if (isOpen) expect(response['usage']).toBeNull()
}

/**
 * The fields that change while a response runs; `store` says at its end whether it could be stored.
 */
const changing = [
  'status',
  'completed_at',
  'output',
  'error',
  'incomplete_details',
  'usage',
  'tool_usage',
  'input_transformations',
  'prompt_cache_diagnostics',
]

function checkSameResponse(states: readonly JsonObject[]): void {
  const lasting = states.map((state) =>
    Object.fromEntries(
      Object.entries(state).filter(([field]) => ![...changing, 'store'].includes(field)),
    ),
  )
  for (const state of lasting) expect(state, 'it is one response').toEqual(lasting[0] ?? {})
}

function checkError(frame: Frame | undefined, response: JsonObject): void {
  const { code, message, type, param } = object(response, 'error')
  expect(typeof code).toBe('string')
  expect(frame, 'flat and nested').toMatchObject({
    type: 'error',
    code,
    message,
    param,
    error: { type, code, message, param },
  })
}

export function isOfLifecycle(type: string): boolean {
  return lifecycle[type] !== undefined
}

function object(parent: JsonObject, field: string): JsonObject {
  const value = parent[field]
  if (!isRecord(value)) throw new Error(`${field} is no object in ${JSON.stringify(parent)}`)
  return value
}
