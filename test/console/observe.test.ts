import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

/** Resolves when the page waits for the tab to be visible again. */
const hideTab = `new Promise((resolve) => {
  const { addEventListener } = document
  document.addEventListener = (type, ...rest) => {
    addEventListener.call(document, type, ...rest)
    if (type === 'visibilitychange') resolve()
  }
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })
})`
const showTab = `{
  delete document.hidden
  document.dispatchEvent(new Event('visibilitychange'))
}`

describe.skipIf(isBrowserMissing)('agents, traffic and the log (needs chromium)', () => {
  const { site, open: openPage } = useConsole()

  test('an agent is created, tried in the playground, changed and deleted; the audit log has it', async () => {
    const visited = await openPage()
    const { page, faults, open, press, fill, choose, check, shows, hides, expectAccessible } =
      visited
    await open('/agents', 'Agents')
    await shows('No agents yet')
    await press('Create an agent')
    await fill('Name', 'Clerk')
    await choose('Model', 'demo-fast')
    await fill('Instructions', 'Answer in one sentence.')
    await choose('Shared with', 'everyone')
    await expectAccessible()
    await press('Create')
    await shows('Clerk saved')
    await expectAccessible()
    await press('Try Clerk in the playground')
    await page.waitForFunction(
      `document.querySelector('select')?.selectedOptions[0]?.innerText.includes('Clerk')`,
    )
    await open('/agents', 'Agents')
    await press('Edit Clerk')
    await fill('Description', 'Knows the rules')
    await press('Save')
    await shows('Knows the rules')

    await press('Edit Clerk')
    await press('Add a function')
    const newRowHasFocus = (count: number) =>
      page.waitForFunction(`document.querySelectorAll('dialog fieldset.card').length === ${count} &&
        [...document.querySelectorAll('dialog fieldset.card')].at(-1).contains(document.activeElement)`)
    await newRowHasFocus(1)
    await page.keyboard.type('look up')
    await fill('What it does', 'Finds a rule.')
    await expectAccessible()
    await press('Save')
    await page.waitForFunction(`[...document.querySelectorAll('dialog .field')].some((field) =>
      field.querySelector('label').innerText === 'Function name' &&
      field.querySelector('input').getAttribute('aria-invalid') === 'true' &&
      field.querySelector('.fault').innerText.includes('letters'))`)
    await expectAccessible()
    await fill('Function name', 'look_up')
    await fill('Parameters (JSON Schema)', '{"type": "object"')
    await page.waitForFunction(`document.querySelector('dialog button[type=submit]').disabled`)
    await fill('Parameters (JSON Schema)', '{"type": "object"}')
    await press('Add an MCP server')
    await newRowHasFocus(2)
    await page.keyboard.type('wiki')
    await fill('Allowed tools', 'search, read')
    await check('The client approves each call')
    await press('JSON')
    const written = await page.$eval('dialog textarea.mono', (area) => area.value)
    expect(JSON.parse(written)).toEqual([
      {
        type: 'function',
        name: 'look_up',
        description: 'Finds a rule.',
        parameters: { type: 'object' },
      },
      {
        type: 'mcp',
        server_label: 'wiki',
        allowed_tools: ['search', 'read'],
        require_approval: 'never',
      },
    ])
    await expectAccessible()
    await press('Form')
    await press('Remove tool 2')
    await press('Save')
    await shows('look_up')
    await press('Delete Clerk')
    await press('Delete')
    await shows('No agents yet')

    await open('/audit', 'Audit log')
    await choose('Action', 'agent')
    await page.waitForFunction(`[...document.querySelectorAll('td code')].map((one) =>
      one.innerText).join() === 'agent.delete,agent.update,agent.update,agent.create'`)
    await expectAccessible()
    const update = await page.waitForSelector('tr:nth-child(3) .actions button')
    await update?.click()
    await page.waitForFunction(
      `document.querySelector('dialog ins')?.innerText === 'Knows the rules'`,
    )
    await expectAccessible()
    await page.keyboard.press('Escape')
    await fill('Who', 'nobody of this name')
    await shows('Nobody found')
    await hides('127.0.0.1')
    // The refused tool.
    expect(faults).toEqual([expect.stringContaining('422')])
    await page.close()
  })

  test('traffic shows a running stream and drains an upstream; a hidden tab does not poll', async () => {
    const running = await site.gateway.post('/v1/responses', {
      model: 'demo-long',
      input: 'Go on',
      stream: true,
      store: false,
    })
    const { page, faults, open, press, shows, expectAccessible } = await openPage()
    await open('/traffic', 'Traffic')
    await shows('demo-long')
    await shows('Streaming')
    await expectAccessible()
    await press('Drain demo')
    await press('Drain')
    await shows('demo is out of service')
    await press('Put back demo')
    await shows('demo is back in service')

    await page.evaluate(hideTab)
    const polled = page.waitForRequest((request) => request.url().endsWith('/v1/traffic'))
    await page.evaluate(showTab)
    await polled
    await running.body?.cancel()
    await shows('No generation runs')
    expect(faults).toEqual([])
    await page.close()
  })

  test('"log out everywhere" ends the session of another browser too', async () => {
    const [here, there] = [await openPage(), await openPage()]
    await here.page.click('.account a')
    await here.shows('Your sessions')
    await here.shows('this one')
    await here.expectAccessible()
    await here.press('Log out everywhere')
    await here.shows('API keys stay valid.')
    await here.press('Log out everywhere')
    await here.shows('Log in to Sluice')
    await there.page.reload()
    await there.shows('Log in to Sluice')
    await here.page.close()
    await there.page.close()
  })
})
