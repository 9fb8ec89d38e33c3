# plan.sh ARGUMENTS OF stages run: after first.sh, the whole plan, detached; wait.sh keeps its folder.
cat > /tmp/go.sh <<'G'
export PYTHONPATH=/tmp/t/new/impl:/tmp/t/new:/tmp/site
cd /tmp/t/new
python3 -m stages run "$@" > /tmp/run.log 2>&1
echo "rc=$?" >> /tmp/run.log; touch /tmp/run.done
G
[ -f .gpu/run.tgz ] && { rm -rf /tmp/t/new/runs/plan; tar xzf .gpu/run.tgz -C /tmp/t/new; }
git -C /tmp/t/new worktree remove --force /tmp/t/old; git -C /tmp/t/new worktree remove --force /tmp/t/more
git -C /tmp/t/new status --short | head -3
rm -f /tmp/run.done
setsid nohup bash /tmp/go.sh "$@" > /dev/null 2>&1 < /dev/null &
echo started
