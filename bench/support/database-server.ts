import postgres from 'postgres'

/** The process of the server that started all others, where it is on this machine; else null. */
export async function serverPid(databaseUrl: string): Promise<number | null> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined })
  try {
    const [row] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`
    const status = await Bun.file(`/proc/${row?.pid}/status`).text()
    const isServer = /^Name:\s+postgres$/m.test(status)
    return isServer ? Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]) : null
  } catch {
    return null
  } finally {
    await client.end()
  }
}

/** What building an index may take of memory in this database, as the server spells it: `1GB`. */
export async function setBuildMemory(databaseUrl: string, memory: string): Promise<void> {
  const client = postgres(databaseUrl, { max: 1, onnotice: () => undefined })
  try {
    const name = client(new URL(databaseUrl).pathname.slice(1))
    const value = `'${memory.replaceAll("'", '')}'`
    await client`alter database ${name} set maintenance_work_mem = ${client.unsafe(value)}`
  } finally {
    await client.end()
  }
}
