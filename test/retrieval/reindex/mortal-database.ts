import type { Database } from '#db/client.ts'

type Drizzle = Database['drizzle']

/**
 * A database as a process sees it that may die: from then on it hears and says nothing, and what it
 * has begun is rolled back. The others go on.
 */
export function mortalDatabase(database: Database): Database & { kill(): void } {
  let isDead = false
  const demandLife = () => {
    if (isDead) throw new Error('this process has died')
  }
  const handlers: ProxyHandler<Drizzle> = {
    get(target, name) {
      demandLife()
      if (name === 'transaction') return mortalTransaction
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }
  const mortalTransaction: Drizzle['transaction'] = (work, options) =>
    database.drizzle.transaction(async (transaction) => {
      const result = await work(transaction)
      demandLife()
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
