import { createSessionSecret, hashSecret } from '#auth/session-cookie.ts'
import type { CodeStore } from './code-store.ts'

/** How long the link of a start works, and the session that it begins: as long as the printed token. */
export const codeSessionS = 2_592_000

export type StartCodes = ReturnType<typeof createStartCodes>

/** Codes of the link that a gateway in development prints. Each works once. */
export function createStartCodes({
  store,
  now,
}: {
  store: Pick<CodeStore, 'addStartCode' | 'takeStartCode'>
  now: () => Date
}) {
  return {
    /** A new code; those of earlier starts no longer work. */
    async create(): Promise<string> {
      const code = createSessionSecret()
      const createdAt = now()
      const expiresAt = new Date(createdAt.getTime() + codeSessionS * 1000)
      await store.addStartCode(hashSecret(code), createdAt, expiresAt)
      return code
    },
    /** Whether the code is valid; not any more afterwards. */
    take: (code: string): Promise<boolean> => store.takeStartCode(hashSecret(code), now()),
  }
}
