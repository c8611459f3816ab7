import type { QueuedCall } from '#inference/fair-queue/fair-queue.ts'

export function queued(given: Partial<QueuedCall> = {}): QueuedCall {
  return {
    model: 'a-model',
    upstreams: ['gpu'],
    principal: 'anne',
    priority: 'interactive',
    costTokens: 100,
    deadlineMs: Number.POSITIVE_INFINITY,
    ...given,
  }
}
