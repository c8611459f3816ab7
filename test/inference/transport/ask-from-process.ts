import { join } from 'node:path'
import type { TransportKind } from '#inference/transport/create-transport.ts'
import { inheritedEnvironment } from '#test/support/process.ts'
import type { Outcome } from './asking-program.ts'
import { tlsFixtures } from './scripted-server.ts'

const program = join(import.meta.dir, 'asking-program.ts')

/** The outcome of each URL in a process that trusts the test authority. */
export async function askFromProcess(
  kind: TransportKind,
  urls: readonly string[],
  environment: Record<string, string> = {},
): Promise<Outcome[]> {
  const child = Bun.spawn([process.execPath, program, kind, ...urls], {
    env: {
      ...inheritedEnvironment(),
      NODE_EXTRA_CA_CERTS: join(tlsFixtures, 'authority.pem'),
      ...environment,
    },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text())
}
