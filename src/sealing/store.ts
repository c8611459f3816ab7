import type { Database } from '#db/client.ts'
import { sealSecret } from '#db/schema/sealing.ts'

export type SealingDatabase = Pick<Database, 'drizzle'>

const onlyId = 1

/** The secret that a deployment without configured keys seals with; for the start of a process. */
export function createSealingStore({ drizzle }: SealingDatabase) {
  const findSecret = async (): Promise<string | undefined> => {
    const [row] = await drizzle.select({ secret: sealSecret.secret }).from(sealSecret)
    return row?.secret
  }
  return {
    findSecret,

    /** Keeps this secret unless there is one; answers with the one that is kept. */
    async keepSecret(secret: string): Promise<string> {
      await drizzle.insert(sealSecret).values({ id: onlyId, secret }).onConflictDoNothing()
      return (await findSecret()) ?? secret
    },
  }
}
