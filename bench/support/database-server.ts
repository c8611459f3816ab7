import postgres from 'postgres'

/** The postmaster's process id if it runs on this machine; otherwise null. */
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

/** Sets the memory for building indexes in this database, in PostgreSQL notation: `1GB`. */
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
