import type { Database } from '#db/client.ts'

type Drizzle = Database['drizzle']

/**
 * The database of a process that can crash. After the crash no query or notification gets through,
 * and open transactions are rolled back. Other processes are not affected.
 */
export function failingDatabase(database: Database): Database & { kill(): void } {
  let isDead = false
  const requireAlive = () => {
    if (isDead) throw new Error('this process has died')
  }
  const handlers: ProxyHandler<Drizzle> = {
    get(target, name) {
      requireAlive()
      if (name === 'transaction') return mortalTransaction
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }
  const mortalTransaction: Drizzle['transaction'] = (work, options) =>
    database.drizzle.transaction(async (transaction) => {
      const result = await work(transaction)
      requireAlive()
      return result
    }, options)
  return {
    ...database,
    drizzle: new Proxy(database.drizzle, handlers),
    async listen(channel, { onMessage, onGap }) {
      await database.listen(channel, {
        onMessage: (payload) => isDead || onMessage(payload),
        onGap: () => isDead || onGap(),
      })
    },
    kill() {
      isDead = true
    },
  }
}
