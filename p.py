import sys; sys.argv=['x','1']
exec(open('/tmp/s35/upd/bench.py').read().split('for name in C:')[0])
import os
name=os.environ['CASE']; su,st,_=C[name]
pre="SET client_min_messages=warning; SET synchronous_commit=off;\nSELECT pg_backend_pid() AS pid \\gset\n\\setenv PID :pid\n\\o /dev/null\n"+su('lanes')+"\n"
sql=pre+"\\! perf record -q -F ${FREQ:-4000} %s -p $PID -o /tmp/s35/upd/perf.data -- sleep 60 >/dev/null 2>&1 & sleep 0.5; echo $! > /tmp/s35/upd/perf.pid\n"%os.environ.get('PG','')+st+"\n\\! kill -INT $(cat /tmp/s35/upd/perf.pid); sleep 1\n"
r=subprocess.run(H,input=sql,capture_output=True,text=True); print(r.stderr[:500])
