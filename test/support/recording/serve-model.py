"""Serves a model file with llama.cpp on a port of this machine, until its input ends.

Arguments: the file, the name of the model, the port.
"""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {sys.argv[2]}
params.offline = True
params.fit_params = False
params.warmup = False
params.ui = False
params.n_ctx = 2048
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.verbosity = 1
params.port = int(sys.argv[3])
server = xllamacpp.Server(params)
sys.stdin.read()
