import { isRecord, parseJson } from '#lib/json.ts'
import type { Log } from '#telemetry/log.ts'

/** Messages between workers about responses. Delivery is best effort; the database is the truth. */
export type ResponseMessage = { readonly what: 'cancel' | 'deleted'; readonly id: string }

export type MessageBus = {
  listen(
    channel: string,
    listener: { onMessage(payload: string): void; onGap(): void },
  ): Promise<void>
  notify(channel: string, payload: string): Promise<void>
}

export type ResponseBus = {
  listen(onMessage: (message: ResponseMessage) => void): Promise<void>
  /** Does not wait for delivery. */
  publish(message: ResponseMessage): void
}

const channel = 'responses'

export function createResponseBus(bus: MessageBus, log: Pick<Log, 'warn'>): ResponseBus {
  return {
    listen: (onMessage) =>
      bus.listen(channel, {
        onMessage(payload) {
          const message = parseMessage(payload)
          if (message !== null) onMessage(message)
        },
        // Recovery finds in the database what was missed.
        onGap() {},
      }),
    publish(message) {
      bus.notify(channel, JSON.stringify(message)).catch((error: unknown) => {
        log.warn('response notification failed', { error })
      })
    },
  }
}

function parseMessage(payload: string): ResponseMessage | null {
  const message = parseJson(payload)
  if (!isRecord(message)) return null
  const { what, id } = message
  if ((what === 'cancel' || what === 'deleted') && typeof id === 'string') return { what, id }
  return null
}
