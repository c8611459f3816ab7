export const device = {
  'device.about': 'A command line asks for an API key of yours.',
  'device.approve': 'Approve',
  'device.approved': 'Approved. The command line gets its key now.',
  'device.close': 'You can close this page.',
  'device.code': 'Code',
  'device.code_hint': 'The command line shows it.',
  'device.compare': 'Approve only if your command line shows the same code:',
  'device.continue': 'Continue',
  'device.denied': 'Denied. The command line gets no key.',
  'device.deny': 'Deny',
  'device.question': 'Log in {name}?',
  'device.title': 'Log in a command line',
  'device.warning':
    'Never approve a code that somebody sent you: the key would give them your rights.',
}
