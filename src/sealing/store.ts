import type { Database } from '#db/client.ts'
import { sealSecret } from '#db/schema/sealing.ts'

export type SealingDatabase = Pick<Database, 'drizzle'>

const onlyId = 1

/** The generated secret of a deployment without configured keys. Read when a process starts. */
export function createSealingStore({ drizzle }: SealingDatabase) {
  const findSecret = async (): Promise<string | undefined> => {
    const [row] = await drizzle.select({ secret: sealSecret.secret }).from(sealSecret)
    return row?.secret
  }
  return {
    findSecret,

    /** Stores this secret unless there is one; returns the stored one. */
    async insertSecret(secret: string): Promise<string> {
      await drizzle.insert(sealSecret).values({ id: onlyId, secret }).onConflictDoNothing()
      return (await findSecret()) ?? secret
    },
  }
}
