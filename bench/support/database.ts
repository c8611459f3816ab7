import postgres from 'postgres'
import { afterChildren, StartError } from './children.ts'

/**
 * An empty database of its own on the server of `serverUrl`, where the role may make one. It is
 * removed when the bench ends. Gives its URL.
 */
export async function createDatabase(serverUrl: string): Promise<string> {
  const name = `sluice_bench_${crypto.randomUUID().replaceAll('-', '')}`
  await onServer(serverUrl, `create database ${name}`)
  afterChildren(() => onServer(serverUrl, `drop database if exists ${name} with (force)`))
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(serverUrl: string, statement: string): Promise<void> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => undefined })
  try {
    await sql.unsafe(statement)
  } catch (error) {
    throw new StartError(`the database server refused "${statement}": ${String(error)}`)
  } finally {
    await sql.end()
  }
}
