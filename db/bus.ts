import { type SQL, sql } from 'drizzle-orm'
import type { Sql } from 'postgres'
import type { Log } from '#telemetry/log.ts'

export type ChannelListener = {
  onMessage(payload: string): void
  /** Messages may have been lost: caches that depend on them must be invalidated. */
  onGap(): void
}

/** Messages between the processes that share a database. Delivery is best effort. */
export type MessageBus = {
  listen(channel: string, listener: ChannelListener): Promise<void>
  notify(channel: string, payload: string): Promise<void>
  notifyOnCommit(transaction: Executes, channel: string, payload: string): Promise<void>
}

/** A transaction or the database. */
export type Executes = { execute(query: SQL): PromiseLike<unknown> }

/** PostgreSQL's limit is 8,000 bytes, including the channel name. */
const messageBytesMax = 7_999
/** All channels share one PostgreSQL channel, so that one subscription has to be restored. */
const sharedChannel = 'sluice'

/** For an embedded database, which has one process. */
export function createLocalBus(log: Pick<Log, 'error'>): MessageBus {
  const listeners = createListeners(log)
  return {
    async listen(channel, listener) {
      listeners.add(channel, listener)
    },
    async notify(channel, payload) {
      listeners.deliver(encodeMessage(channel, payload))
    },
    async notifyOnCommit(_transaction, channel, payload) {
      // Queries of listeners wait for the only connection, and so for the commit.
      listeners.deliver(encodeMessage(channel, payload))
    },
  }
}

/** PostgreSQL LISTEN (on an extra connection) and NOTIFY. */
export function createServerBus(client: Sql, log: Pick<Log, 'error' | 'info'>): MessageBus {
  const listeners = createListeners(log)
  let subscribed: Promise<unknown> | undefined
  let subscriptions = 0
  function subscribe() {
    // The client resubscribes after a lost connection and calls back each time.
    return client.listen(sharedChannel, listeners.deliver, () => {
      subscriptions += 1
      if (subscriptions === 1) return
      log.info('database subscription restored')
      listeners.reportGap()
    })
  }
  return {
    async listen(channel, listener) {
      listeners.add(channel, listener)
      subscribed ??= subscribe()
      await subscribed
    },
    async notify(channel, payload) {
      await client.notify(sharedChannel, encodeMessage(channel, payload))
    },
    async notifyOnCommit(transaction, channel, payload) {
      const message = encodeMessage(channel, payload)
      await transaction.execute(sql`select pg_notify(${sharedChannel}, ${message})`)
    },
  }
}

function createListeners(log: Pick<Log, 'error'>) {
  const byChannel = new Map<string, ChannelListener[]>()
  const guarded = (call: () => void) => {
    try {
      call()
    } catch (error) {
      log.error('database listener failed', { error })
    }
  }
  return {
    add(channel: string, listener: ChannelListener) {
      byChannel.set(channel, [...(byChannel.get(channel) ?? []), listener])
    },
    deliver(message: string) {
      const end = message.indexOf(':')
      for (const listener of byChannel.get(message.slice(0, end)) ?? []) {
        guarded(() => listener.onMessage(message.slice(end + 1)))
      }
    },
    reportGap() {
      for (const listener of [...byChannel.values()].flat()) guarded(() => listener.onGap())
    },
  }
}

function encodeMessage(channel: string, payload: string): string {
  const message = `${channel}:${payload}`
  if (Buffer.byteLength(message) > messageBytesMax) {
    throw new Error(`a notification on ${channel} exceeds ${messageBytesMax} bytes`)
  }
  return message
}
