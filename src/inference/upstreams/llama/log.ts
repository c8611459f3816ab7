/** What is told of the processes; a part of the program's log. */
export type LlamaLog = {
  readonly [level in 'info' | 'warn' | 'error']: (
    message: string,
    fields?: { readonly [name: string]: unknown },
  ) => void
}
