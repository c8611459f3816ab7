import { expect } from 'bun:test'
import { join } from 'node:path'
import { inheritedEnvironment } from '#test/support/process.ts'
import { overEachTransport } from './over-each-transport.ts'
import { answering, okAnswer, serveScript } from './scripted-server.ts'
import type { ShortageReport } from './short-of-descriptors.ts'

overEachTransport(import.meta.file, ({ test, kind }) => {
  test('without a descriptor for its socket a request waits briefly, then fails with no_descriptor_left', async () => {
    const server = await serveScript(answering(okAnswer))
    const other = await serveScript(answering(okAnswer))
    try {
      const program = join(import.meta.dir, 'short-of-descriptors.ts')
      const command = [process.execPath, program, kind, server.url, other.url]
      const child = Bun.spawn(['sh', '-c', 'ulimit -n 100 && exec "$@"', 'sh', ...command], {
        env: inheritedEnvironment(),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const report: ShortageReport = JSON.parse(await new Response(child.stdout).text())
      expect(report).toEqual({
        refused: { kind: 'no_descriptor_left', status: 503, retryAfterS: 1 },
        warnings: 1,
        waited: 'ok',
        relieved: 'ok',
      })
    } finally {
      server.stop()
      other.stop()
    }
  })
})
